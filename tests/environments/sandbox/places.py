"""A web application that keeps its rows in several SQLite databases: `places.py PORT DATABASE...`.

It takes a lock and listens at a socket in its own folder, writes its process id to /run/lock, and replaces a file at each start.
"""

import fcntl
import html
import os
import socket
import sqlite3
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

HERE = Path(__file__).resolve().parent
PAGE = """<!doctype html><title>Rows</title><h1>Rows: {rows}</h1>
<form method=post action=/add><input name=text aria-label=note><button>Add</button></form>"""

lock = (HERE / "lock").open("w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
control = socket.socket(socket.AF_UNIX)
control.bind("control.sock")
control.listen()
Path("/run/lock/places.pid").write_text(str(os.getpid()))
(HERE / "state.new").write_text("started")
(HERE / "state.new").replace(HERE / "state")

databases = [sqlite3.connect(Path(each).expanduser()) for each in sys.argv[2:]]
for database in databases:
    database.execute("create table if not exists rows(text)")


class Application(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        rows = [sorted(text for (text,) in database.execute("select text from rows")) for database in databases]
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE.format(rows=html.escape("; ".join(map(" ".join, rows)))).encode())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        for database in databases:
            with database:
                database.execute("insert into rows values (?)", form["text"])
        self.send_response(303)
        self.send_header("Location", "/")
        self.end_headers()


HTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
