"""The egress of a sandbox: connections that its browser asks for by SOCKS are made on the host, to admitted destinations only.

A connection ends with its fork: a restored browser has none, and makes new ones. network/tunnel.py has the protocol and the checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from exact.environments.browser.fork.init_process import FRAME, OUTWARD, WINDOW
from exact.environments.browser.network.dial import Destinations, Dialler
from exact.environments.browser.network.tunnel import Listener, Tunnel
from exact.environments.sites.site import Outside

_MOST = 1024
"""Maximum number of connections of one sandbox at a time. Chromium opens fewer."""
Send = Callable[[int, bytes], Awaitable[None]]
Tell = Callable[..., Awaitable[None]]


class Egress:
    """The connections of one sandbox to the outside."""

    def __init__(self, send: Send, tell: Tell, destinations: Destinations, dialler: Dialler) -> None:
        """Make an egress. `send(connection, data)` sends bytes to the sandbox, `tell(do=..., ...)` a message."""
        self._send, self._tell, self._dialler = send, tell, dialler
        self.destinations = destinations
        """The servers that may be reached."""
        self.listener: Listener | None = None
        """Who learns which connections are not made."""
        self._ends: dict[int, tuple[_Connection, Tunnel]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def sockets(self) -> int:
        """Number of open WebSockets, which a fork will find closed."""
        return sum(tunnel.is_socket for _, tunnel in self._ends.values())

    def open(self, ident: int) -> None:
        """Serve a connection that the sandbox opened. Raises ValueError if there are too many."""
        if not ident & OUTWARD or ident in self._ends or len(self._ends) >= _MOST:
            raise ValueError(f"connection {ident} is not a new one, or is one of more than {_MOST}")
        end = _Connection(ident, self._send, self._tell)
        tunnel = Tunnel(end, self.destinations, self._dialler, lambda: self.listener)
        self._ends[ident] = end, tunnel
        task = asyncio.ensure_future(self._serve(ident, tunnel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def hear(self, ident: int, data: bytes) -> None:
        """Take bytes that the sandbox sent on a connection; none mean its end."""
        if found := self._ends.get(ident):
            found[0].hear(data)

    def took(self, ident: int, size: int) -> None:
        """Take the acknowledgement that the sandbox has handed on `size` bytes."""
        if found := self._ends.get(ident):
            found[0].window.add(size)

    def admit(self, allowed: Iterable[str], sockets: Iterable[str]) -> None:
        """Allow connections to these origins from now on. `sockets`: origins that WebSockets may be opened to."""
        self.destinations.admit(allowed, sockets)

    def shut(self) -> None:
        """End all connections and allow no more: the interceptor of their requests goes away."""
        self.admit((), ())
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Shut, and wait until all connections have ended. Never raises; may be called twice."""
        self.shut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, ident: int, tunnel: Tunnel) -> None:
        try:
            await tunnel.serve()
        finally:
            del self._ends[ident]
        await self._send(ident, b"")


class _SendWindow:
    """The flow-control window of a connection: the bytes that may be in flight to the sandbox."""

    def __init__(self) -> None:
        self._free, self._has_space = WINDOW, asyncio.Event()
        self._has_space.set()

    def add(self, size: int) -> None:
        self._free += size
        if self._free > 0:
            self._has_space.set()
        else:
            self._has_space.clear()

    async def available(self, most: int) -> int:
        """Wait until the window is open. Return how many bytes may be sent, at most `most`."""
        await self._has_space.wait()
        return min(most, self._free)


class _Connection:
    """The browser's end of a connection: the bytes from the sandbox, and the window for those to it."""

    def __init__(self, ident: int, send: Send, tell: Tell) -> None:
        self._ident, self._send, self._tell = ident, send, tell
        self._reader, self.window = asyncio.StreamReader(limit=WINDOW), _SendWindow()
        self._read = self._unacknowledged = 0
        """Bytes that were read and not acknowledged, and all that were not acknowledged."""
        self._ended = False

    def hear(self, data: bytes) -> None:
        """Take bytes from the sandbox. Raises ValueError if it sends more than it may, or after the end."""
        self._unacknowledged += len(data)
        if self._unacknowledged > WINDOW or (self._ended and data):
            raise ValueError(f"a connection with more than {WINDOW} bytes in flight, or with bytes after its end")
        if data:
            self._reader.feed_data(data)
        else:
            self._ended = True
            self._reader.feed_eof()

    async def exactly(self, size: int) -> bytes:
        data = await self._reader.readexactly(size)
        self._read += size
        await self._acknowledge()
        return data

    async def read(self) -> bytes:
        await self._acknowledge()
        data = await self._reader.read(FRAME)
        self._read += len(data)
        return data

    async def send(self, data: bytes) -> None:
        while data:
            size = await self.window.available(len(data))
            self.window.add(-size)
            await self._send(self._ident, data[:size])
            data = data[size:]

    async def _acknowledge(self) -> None:
        if self._read:
            size, self._read = self._read, 0
            self._unacknowledged -= size
            await self._tell(do="took", end=self._ident, bytes=size)


def proxy_arguments(outside: Outside, inner: Iterable[str], port: int) -> list[str]:
    """Return Chromium's arguments for the proxy at a port of its loopback. `inner`: hosts without the proxy, as in its bypass list."""
    found = [f"--proxy-server=socks5://127.0.0.1:{port}", f"--proxy-bypass-list={';'.join(inner)}"]
    if outside.trusted:
        found.append(f"--ignore-certificate-errors-spki-list={','.join(outside.trusted)}")
    return found
