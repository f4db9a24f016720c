"""A small site to try things on: opening hours, a form, and forty shoes on twenty pages. It listens at http://127.0.0.1:8000/."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

PAGES = 20


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        url = urlsplit(self.path)
        match url.path:
            case "/":
                self.show("<h1>Museum</h1><p>Open from 9 to 17.</p><a href=/book>Book a visit</a>")
            case "/book":
                fields = "<label>Name <input name=name></label> <label>Visitors <input name=visitors></label>"
                self.show(f"<h1>Book a visit</h1><form method=post action=/book>{fields} <button>Book</button></form>")
            case "/shoes":
                page = int(parse_qs(url.query).get("page", ["1"])[0])
                rows = "".join(f"<tr><td>Shoe {number}</td><td>{20 + number} euros</td></tr>" for number in (2 * page - 1, 2 * page))
                further = f"<a href=/shoes?page={page + 1}>Next page</a>" if page < PAGES else ""
                self.show(f"<h1>Shoes</h1><table><tr><th>Name</th><th>Price</th></tr>{rows}</table>{further}")
            case _:
                self.send_error(404)

    def do_POST(self):
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.show(f"<h1>Booked</h1><p>{sent['visitors'][0]} visitors, in the name of {sent['name'][0]}.</p>")

    def show(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(f"<!doctype html><title>Museum</title>{body}".encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8000), Site).serve_forever()
