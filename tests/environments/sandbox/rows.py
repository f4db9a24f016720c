"""A web application with state, for tests: rows in SQLite, added by a form. Run as a script: `rows.py PORT`.

`/die` ends it, `/fade` does so a while after it has hung up, `/never` never answers.
"""

import html
import os
import socket
import sqlite3
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

database = sqlite3.connect("/tmp/rows.db", check_same_thread=False)
database.execute("create table if not exists rows(text)")
lock = threading.Lock()

PAGE = """<!doctype html><title>Rows</title><h1>Rows: {rows}</h1>
<form method=post action=/add><input name=text aria-label=note><button>Add</button></form>"""


class Application(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/die":
            os._exit(3)
        if self.path == "/fade":
            self.server.socket.shutdown(socket.SHUT_RDWR)
            threading.Timer(0.3, os._exit, (3,)).start()
            self.close_connection = True
            return
        if self.path == "/never":
            threading.Event().wait()
        with lock:
            rows = [text for (text,) in database.execute("select text from rows")]
        body = PAGE.format(rows=html.escape(", ".join(rows) or "none")).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with lock, database:
            database.execute("insert into rows values (?)", form.get("text", [""]))
        self.send_response(303)
        self.send_header("Location", "/")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
