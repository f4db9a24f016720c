"""A form application with a database, for benchmarks: `_form.py PORT`. Standard library only.

`/begin?seconds=S` empties it and makes every later page take S seconds; then each button adds its row and shows the next page.
"""

import html
import sqlite3
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CHOICES = ("apple", "pear", "quince")
PAGE = """<!doctype html><title>Order</title><h1>Rows: {rows}</h1><p>Page {number}</p>
<form method=post action=/add>{buttons}<label>Note <input name=note></label></form>"""
database = sqlite3.connect(":memory:", check_same_thread=False)
database.execute("create table rows(text)")
latency = {"seconds": 0.0}


class Application(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if asked.path == "/begin":
            latency["seconds"] = float(parse_qs(asked.query)["seconds"][0])
            with database:
                database.execute("delete from rows")
            self.answer(303, b"", ("Location", "/"))
        elif asked.path == "/":
            time.sleep(latency["seconds"])
            rows = [text for (text,) in database.execute("select text from rows order by rowid")]
            buttons = "".join(f"<button name=row value={row}>Add {row}</button>" for row in CHOICES)
            self.answer(200, PAGE.format(rows=html.escape(", ".join(rows) or "none"), number=len(rows), buttons=buttons).encode())
        else:
            self.answer(404, b"")

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
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
