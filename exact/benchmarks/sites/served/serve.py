"""Program that serves a seeded site: `serve.py SITE PORT SEED [TOKEN]`. It runs on a copy, which goes with the process.

`POST /__reset__` with the token in the header X-Reset restores the seed's data; log-ins stay.
"""

from __future__ import annotations

import importlib
import shutil
import signal
import sqlite3
import sys
import tempfile
import threading
from pathlib import Path
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

sys.path.insert(0, str(Path(__file__).parent))


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address) -> None:
        """Ignore a browser that disconnected; report any other error."""


class Quiet(WSGIRequestHandler):
    def log_message(self, format, *args) -> None:
        pass


def restored(site, seed: Path, folder: Path) -> None:
    """Restore the database, except the table of log-ins."""
    with sqlite3.connect(site.database(seed).as_uri() + "?mode=ro", uri=True) as source, sqlite3.connect(site.database(folder)) as target:
        kept = list(target.execute(f"select * from {site.KEPT}")) if site.KEPT else []
        source.backup(target)
        for row in kept:
            target.execute(f"insert or replace into {site.KEPT} values ({','.join('?' * len(row))})", row)
    source.close()
    target.close()
    site.forget()


def resettable(application, site, seed: Path, folder: Path, token: str):
    """Return the application with the reset route."""
    lock = threading.Lock()

    def answered(environ, start_response):
        if environ["PATH_INFO"] != "/__reset__":
            return application(environ, start_response)
        if not token or environ["REQUEST_METHOD"] != "POST" or environ.get("HTTP_X_RESET") != token:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"Not found"]
        with lock:
            restored(site, seed, folder)
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [b"reset"]

    return answered


def main() -> None:
    name, port, seed, token = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4] if len(sys.argv) > 4 else ""
    site = importlib.import_module(f"{name}_site")
    with tempfile.TemporaryDirectory(prefix=f"exact-{name}-") as made:
        folder = Path(made) / name
        shutil.copytree(seed, folder)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        application = resettable(site.application(folder), site, seed, folder, token)
        with make_server("127.0.0.1", port, application, server_class=Server, handler_class=Quiet) as server:
            server.serve_forever()


if __name__ == "__main__":
    main()
