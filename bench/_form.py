"""A form application with a database, for benchmarks: `_form.py PORT`. Standard library only.

`/begin?seconds=S` begins a session without rows and makes every later page take S seconds; then each button adds its row and shows the next
page. A session is known by its cookie.
"""

import html
import itertools
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CHOICES = ("apple", "pear", "quince")
PAGE = """<!doctype html><title>Order</title><h1>Rows: {rows}</h1><p>Page {number}</p>
<form method=post action=/add>{buttons}<label>Note <input name=note></label></form>"""
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("create table rows(session, text)")
latency = {"seconds": 0.0}
sessions = itertools.count(1)


class Application(BaseHTTPRequestHandler):
    @property
    def session(self) -> str:
        return self.headers.get("Cookie", "").removeprefix("session=")

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/begin":
            latency["seconds"] = float(parse_qs(asked.query)["seconds"][0])
            self.answer(303, b"", ("Location", "/"), ("Set-Cookie", f"session={next(sessions)}"))
        elif asked.path == "/":
            time.sleep(latency["seconds"])
            rows = [text for (text,) in database.execute("select text from rows where session = ? order by rowid", (self.session,))]
            buttons = "".join(f"<button name=row value={row}>Add {row}</button>" for row in CHOICES)
            self.answer(200, PAGE.format(rows=html.escape(", ".join(rows) or "none"), number=len(rows), buttons=buttons).encode())
        else:
            self.answer(404, b"")

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        with database:
            database.execute("insert into rows values (?, ?)", (self.session, *form["row"]))
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
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
