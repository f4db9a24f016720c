"""A service that holds a given amount of incompressible memory: `_ballast.py PORT MIB`. Standard library only."""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

ballast = [os.urandom(1 << 20) for _ in range(int(sys.argv[2]))]


class Application(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = f"<!doctype html><title>Ballast</title><button>{len(ballast)} MiB</button>".encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


if __name__ == "__main__":
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Application).serve_forever()
