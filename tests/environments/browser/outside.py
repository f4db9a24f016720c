"""A site on the host, for tests: it streams, takes uploads, sets cookies, speaks WebSocket, and remembers what was asked of it."""

from __future__ import annotations

import base64
import hashlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class Site(ThreadingHTTPServer):
    """`pages` gives the HTML of paths; `asked` lists what came, `METHOD /path`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, str] = {}
        self.asked: list[str] = []
        self.cookies: list[str] = []
        self.received = b""
        self.peers: list[str] = []
        """Names in the certificates that clients showed."""
        self.sockets = 0
        self.go = threading.Event()
        """Streams go on once it is set."""

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a browser went away


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Site

    def _answer(self, body: bytes, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        self.server.asked.append(f"{self.command} {parts.path}")
        if isinstance(self.connection, ssl.SSLSocket) and (shown := self.connection.getpeercert()):
            self.server.peers += [str(value) for part in shown["subject"] for name, value in part if name == "commonName"]
        self.server.cookies.append(self.headers.get("Cookie", ""))
        if parts.path in self.server.pages:
            self._answer(b"<!doctype html><title>Site</title>" + self.server.pages[parts.path].encode())
        elif special := getattr(self, f"_{parts.path.strip('/')}", None):
            special(query)
        else:
            self._answer(b"<p>Nothing here", status=404)

    def do_POST(self) -> None:
        self.server.received = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    do_PUT = do_DELETE = do_POST

    def _hop(self, query: dict[str, str]) -> None:
        """`/hop?to=URL&cookie=NAME`: a redirect that may set a cookie."""
        cookie = {"Set_Cookie": f"{query['cookie']}=yes; Path=/"} if "cookie" in query else {}
        self._answer(b"", status=302, Location=query["to"], **cookie)

    def _who(self, query: dict[str, str]) -> None:
        self._answer(f"<p>Cookies: {self.headers.get('Cookie', 'none')}".encode())

    def _text(self, query: dict[str, str]) -> None:
        self._answer(b"some text", "text/plain")

    def _script(self, query: dict[str, str]) -> None:
        """`/script?run=CODE`."""
        self._answer(query["run"].encode(), "text/javascript")

    def _size(self, query: dict[str, str]) -> None:
        """Return the length and digest of the posted body."""
        digest = hashlib.sha256(self.server.received).hexdigest()
        self._answer(f"<p>{len(self.server.received)} {digest}".encode())

    def _large(self, query: dict[str, str]) -> None:
        self._answer(bytes(range(256)) * (int(query["bytes"]) // 256), "application/octet-stream")

    def _file(self, query: dict[str, str]) -> None:
        self._answer(b"content", "application/pdf", Content_Disposition='attachment; filename="bill.pdf"')

    def _never(self, query: dict[str, str]) -> None:
        with suppress(OSError):
            while self.connection.recv(1):
                pass

    def _stream(self, query: dict[str, str]) -> None:
        """Two lines; the second when the test says so. With `as`, a file of that name."""
        self.send_response(200)
        self.send_header("Content-Type", query.get("kind", "text/plain"))
        if "as" in query:
            self.send_header("Content-Disposition", f'attachment; filename="{query["as"]}"')
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for line in ("data: first\n\n", "data: second\n\n"):
            self.wfile.write(f"{len(line):x}\r\n{line}\r\n".encode())
            self.wfile.flush()
            self.server.go.wait(240)
        self.wfile.write(b"0\r\n\r\n")

    def _socket(self, query: dict[str, str]) -> None:
        """Serve a WebSocket that sends the number of earlier ones."""
        key = self.headers["Sec-WebSocket-Key"] + _MAGIC
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.server.sockets += 1
        said = f"number {self.server.sockets}".encode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        self.wfile.write(head.encode() + bytes((0x81, len(said))) + said)
        self._never(query)

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def serving(certificate: Path | None = None, client: Path | None = None) -> Iterator[Site]:
    """Run a site; with TLS if a file with key and certificate is given.

    `client`: the authority that must have signed client certificates.
    """
    site = Site()
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        if client:
            context.load_verify_locations(client)
            context.verify_mode = ssl.CERT_REQUIRED
        site.socket = context.wrap_socket(site.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.go.set()
        site.shutdown()
        site.server_close()
        thread.join()
