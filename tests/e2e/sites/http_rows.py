"""The same application as flask_rows.py without Flask: `http_rows.py PORT [SECONDS]`."""

import html
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qs, urlsplit

PAGE = """<!doctype html><title>Rows</title><h1>Rows: {rows}</h1>
<form method=post action=/add>{buttons}<input name=note aria-label=note></form>"""
CHOICES = ("apple", "pear", "quince")
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("create table rows(text)")
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0


class Application(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def do_GET(self) -> None:
        if urlsplit(self.path).path != "/":
            self.answer(404, b"")
            return
        time.sleep(seconds)
        rows = ", ".join(text for (text,) in database.execute("select text from rows order by rowid"))
        buttons = "".join(f"<button name=row value={row}>Add {row}</button>" for row in CHOICES)
        self.answer(200, PAGE.format(rows=html.escape(rows or "none"), buttons=buttons).encode())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with database:
            database.execute("insert into rows values (?)", form["row"])
        self.answer(303, b"", ("Location", "/"))

    def answer(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (("Content-Type", "text/html"), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Application)
    sys.stderr.write("rows: listening\n")
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    server.serve_forever()
