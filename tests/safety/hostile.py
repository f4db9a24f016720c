"""Servers of an attacker on loopback: sites that write down each request, and ports that no page may reach by any protocol."""

from __future__ import annotations

import base64
import hashlib
import selectors
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_MAGIC = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_READS = ("GET", "HEAD", "OPTIONS")
_ANSWER = (
    b"HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nAccess-Control-Allow-Headers: *\r\nAccess-Control-Allow-Methods: *\r\n"
    b"Content-Type: text/html\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
)


@dataclass(frozen=True)
class Answer:
    """What a site answers at a path. `raw`, where given, is everything that is sent, status line included."""

    body: bytes = b""
    kind: str = "text/html"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    raw: bytes = b""
    endless: bytes = b""
    """Sent after the rest again and again, until the browser leaves."""
    echo: str = ""
    """Name of a request header that is the body of the answer. Authorization is asked for where it is missing."""


class Hostile(ThreadingHTTPServer):
    """A site. `answers` by path; `log` has a line for each request that came: `METHOD /path`, or `WS /path` for a WebSocket."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer] = {}
        self.log: list[str] = []
        self.heads: list[str] = []
        """Address and headers of each request."""
        self.bodies: list[bytes] = []
        self.closing = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def of(self, name: str) -> list[str]:
        """Return the requests of one attack."""
        return [line for line in self.log if f"/{name}/" in f"{line}/"]

    def writes(self, name: str) -> list[str]:
        """Return the requests of one attack that are no reads."""
        return [line for line in self.of(name) if line.partition(" ")[0] not in _READS]

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # the browser went away


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Hostile

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self._any
        raise AttributeError(name)

    def _any(self) -> None:
        path = self.path.partition("?")[0]
        is_socket = self.headers.get("Upgrade", "").lower() == "websocket"
        self.server.log.append(f"{'WS' if is_socket else self.command} {path}")
        self.server.heads.append(f"{self.path}\n{self.headers}")
        if length := int(self.headers.get("Content-Length") or 0):
            self.server.bodies.append(self.rfile.read(length))
        elif "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.close_connection = True
        if is_socket:
            return self._socket()
        answer = self.server.answers.get(path, Answer(b"ok", headers=(("Access-Control-Allow-Origin", "*"),)))
        if answer.echo:
            body = self.headers.get(answer.echo, "")
            asked = (("WWW-Authenticate", 'Basic realm="here"'),) if answer.echo == "Authorization" and not body else ()
            answer = Answer(body.encode(), "text/plain", 401 if asked else 200, asked)
        with suppress(OSError):
            self._send(answer)

    def _send(self, answer: Answer) -> None:
        if answer.raw:
            self.close_connection = True
            self.wfile.write(answer.raw)
        else:
            self.send_response(answer.status)
            if answer.kind:
                self.send_header("Content-Type", answer.kind)
            if self.command == "OPTIONS":
                for name in ("Origin", "Methods", "Headers"):
                    self.send_header(f"Access-Control-Allow-{name}", "*")
            for name, value in answer.headers:
                self.send_header(name, value)
            if answer.endless:
                self.close_connection = True
            else:
                self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body)
        while answer.endless and not self.server.closing.is_set():
            self.wfile.write(answer.endless)

    def _socket(self) -> None:
        """Accept a WebSocket, and note each byte that comes as a message."""
        self.close_connection = True
        accept = base64.b64encode(hashlib.sha1((self.headers["Sec-WebSocket-Key"] + _MAGIC).encode()).digest()).decode()
        head = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        with suppress(OSError):
            self.wfile.write(head.encode())
            while not self.server.closing.is_set() and self.connection.recv(1 << 16):
                pass

    def log_message(self, *args: object) -> None:
        pass


@dataclass(eq=False)
class Trap:
    """A port, TCP and UDP, IPv4 and IPv6, that must not be reached. `arrived` says what came, by protocol and first bytes."""

    port: int
    arrived: list[str] = field(default_factory=list)


class Traps:
    """All traps, served by one thread. A trap answers HTTP, so that an attack that begins with a question goes on."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._ended = False
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def set(self) -> Trap:
        """Return a new trap at a port that is free for all four kinds of sockets."""
        for _ in range(50):
            first = socket.create_server(("127.0.0.1", 0))
            port = first.getsockname()[1]
            made = [first]
            try:
                if socket.has_ipv6:
                    with suppress(OSError):  # IPv6 is switched off here
                        made.append(socket.create_server(("::1", port), family=socket.AF_INET6))
                for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))[: len(made)]:
                    made.append(socket.socket(family, socket.SOCK_DGRAM))
                    made[-1].bind((host, port))
            except OSError:
                for each in made:
                    each.close()
                continue
            trap = Trap(port)
            for each in made:
                each.setblocking(False)
                self._selector.register(each, selectors.EVENT_READ, (trap, -1))
            return trap
        raise OSError("no port is free for TCP and UDP")

    def _serve(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select(0.05):
                here = key.fileobj
                assert isinstance(here, socket.socket)
                trap, number = key.data
                with suppress(OSError):
                    self._take(here, trap, number)

    def _take(self, here: socket.socket, trap: Trap, number: int) -> None:
        if here.type == socket.SOCK_DGRAM:
            trap.arrived.append(f"udp {here.recv(2048)[:40]!r}")
        elif number < 0:
            connection, _ = here.accept()
            connection.setblocking(False)
            trap.arrived.append("tcp")
            self._selector.register(connection, selectors.EVENT_READ, (trap, len(trap.arrived) - 1))
        else:
            try:
                came = here.recv(4096)
            except OSError:
                came = b""
            if came and trap.arrived[number] == "tcp":
                trap.arrived[number] = f"tcp {came[:60]!r}"
                if came[:1].isalpha():
                    here.send(_ANSWER)
            if not came:
                self._selector.unregister(here)
                here.close()

    def __enter__(self) -> Traps:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._ended = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        self._selector.close()


@dataclass
class Attacker:
    """Everything that an attacker runs: `own`, the site of the task; `other`, which the task allows too; and the traps."""

    own: Hostile
    other: Hostile
    traps: Traps

    @property
    def start(self) -> str:
        return f"http://localhost:{self.own.port}"

    @property
    def beside(self) -> str:
        return f"http://127.0.0.1:{self.other.port}"

    def fill(self, text: str, name: str, trap: Trap) -> str:
        """Replace the names of addresses in a page by addresses."""
        for word, value in (
            ("TRAP_PORT", str(trap.port)),
            ("TRAP", f"127.0.0.1:{trap.port}"),
            ("OWN", f"localhost:{self.own.port}"),
            ("OTHER", f"127.0.0.1:{self.other.port}"),
            ("NAME", name),
        ):
            text = text.replace(word, value)
        return text


@contextmanager
def attacker() -> Iterator[Attacker]:
    """Run an attacker's servers."""
    with Traps() as traps, _served() as own, _served() as other:
        yield Attacker(own, other, traps)


@contextmanager
def _served() -> Iterator[Hostile]:
    site = Hostile()
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        site.shutdown()
        site.server_close()
        thread.join()


def until(holds: object, seconds: float) -> bool:
    """Return whether a function becomes true within some seconds."""
    assert callable(holds)
    end = time.monotonic() + seconds
    while not (found := holds()) and time.monotonic() < end:
        time.sleep(0.02)
    return bool(found)
