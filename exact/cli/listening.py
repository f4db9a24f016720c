"""Servers of commands: a listening socket, and bounds on connections and requests."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import h11
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from exact.errors import UsageError

REQUEST_SECONDS = 20.0
"""Seconds after which a connection is closed whose request, head and body, has not arrived."""
MOST_CONNECTIONS = 400
"""Most connections at once, below the number of files that systems let a process open."""
LARGEST_BODY = 64 << 20
"""Most bytes of a request's body."""
_FULL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens. Raises UsageError if the address is taken, or not one of this machine."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, UnicodeError, TypeError) as error:  # the last two: a name that no host can have
        why = getattr(error, "strerror", None) or "it is no host name"
        raise UsageError(f"cannot listen on {host}:{port}: {why}: choose another --port or --host") from error


def url_of(host: str, listening: socket.socket) -> str:
    """Return the address of a server that listens on `host`."""
    return f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}"


def server(app: Any, *, sessions: int = 0, **settings: Any) -> Server:
    """Return a server that its clients can neither hold up nor exhaust.

    sessions: connections that clients may keep open besides those of `MOST_CONNECTIONS`. settings: further ones of uvicorn.
    """
    return Server(
        Config(
            BoundedBodies(app), http=BoundedConnection, limit_concurrency=MOST_CONNECTIONS + sessions, timeout_graceful_shutdown=1,
            access_log=False, server_header=False, ws_max_size=2**24, **settings,
        )
    )  # fmt: skip


class BoundedConnection(H11Protocol):
    """Connection that is closed if its request does not arrive in time, and at once if there are too many."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > (self.limit_concurrency or MOST_CONNECTIONS):
            transport.write(_FULL)
            transport.close()
            return
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._let_be()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Set the deadline while a request is arriving."""
        if self in self.connections and self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._deadline = self._deadline or self.loop.call_later(REQUEST_SECONDS, self.transport.abort)
        else:
            self._let_be()

    def _let_be(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class BoundedBodies:
    """ASGI middleware that refuses requests whose bodies are too large."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        left, has_begun = LARGEST_BODY, False

        async def received() -> Any:
            nonlocal left
            message = await receive()
            left -= len(message.get("body") or b"") if message["type"] == "http.request" else 0
            return message if left >= 0 else {"type": "http.disconnect"}

        async def sent(message: Any) -> None:
            nonlocal has_begun
            if left >= 0 or has_begun:
                has_begun = True
                await send(message)

        await self._app(scope, received, sent)
        if left < 0 and not has_begun:
            said = f"a request has at most {LARGEST_BODY:,} bytes".encode()
            headers = [(b"connection", b"close"), (b"content-length", str(len(said)).encode())]
            await send({"type": "http.response.start", "status": 413, "headers": headers})
            await send({"type": "http.response.body", "body": said})
