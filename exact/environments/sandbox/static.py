"""Server of static files inside a sandbox: `static.py PORT FOLDER`. Standard library only, Python 3.9 and later."""

from __future__ import annotations

import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer


class Files(SimpleHTTPRequestHandler):
    """Handler for files below a folder. Responses may be cached, because the files never change."""

    protocol_version = "HTTP/1.1"

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=86400")
        super().end_headers()

    def guess_type(self, path: str) -> str:  # type: ignore[override]
        """Return the media type of a file. Text is UTF-8, whatever the page declares."""
        kind = super().guess_type(path)
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def log_message(self, format: str, *args: object) -> None:
        """Discard the access log."""


def main() -> None:
    port, folder = sys.argv[1:]
    ThreadingHTTPServer(("127.0.0.1", int(port)), partial(Files, directory=folder)).serve_forever()


if __name__ == "__main__":
    main()
