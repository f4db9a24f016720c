"""The egress of a sandbox: connections that its browser asks for by SOCKS are made on the host, to allowed origins only.

Chromium speaks HTTP and TLS itself, so cookies, streams, uploads, downloads and certificates work as without a sandbox. The interceptor
decides about every request; this is a second barrier behind it, which also holds for what the interceptor does not see. A connection ends
with its fork: a restored browser has none, and makes new ones.
"""

from __future__ import annotations

import asyncio
import ipaddress
import struct
from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import urlsplit

from exact.environments.browser.fork.dial import Dial, dial_directly
from exact.environments.browser.fork.init_process import FRAME, WINDOW
from exact.environments.sites.site import Outside
from exact.errors import EnvironmentFailure
from exact.safety import host_name, origin

_CONNECT_SECONDS = 30.0
_GREETING, _GRANTED, _FORBIDDEN, _UNREACHABLE, _NO_SUCH_COMMAND = b"\5\0", 0, 2, 4, 7
"""Messages and reply codes of SOCKS 5, RFC 1928."""
_NAME, _FOUR, _SIX = 3, 1, 4
"""Address types of SOCKS 5."""

Send = Callable[[int, bytes], Awaitable[None]]
Tell = Callable[..., Awaitable[None]]


class Egress:
    """The connections of one sandbox to the outside."""

    def __init__(self, send: Send, tell: Tell, hosts: Mapping[str, str], dial: Dial = dial_directly) -> None:
        """Make an egress. `send(connection, data)` sends bytes to the sandbox, `tell(do=..., ...)` a message; `dial` connects."""
        self._send, self._tell, self._dial = send, tell, dial
        self._hosts = {host_name(name): address for name, address in hosts.items()}
        self._allowed: frozenset[str] = frozenset()
        self._sockets: frozenset[str] = frozenset()
        self._ends: dict[int, _Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def admit(self, allowed: Iterable[str], sockets: Iterable[str]) -> None:
        """Allow connections to these origins from now on. `sockets`: origins that WebSockets may be opened to."""
        self._allowed, self._sockets = frozenset(allowed), frozenset(sockets)

    def move(self, base: str, address: str) -> None:
        """Connect to the URL `address` from now on when the browser asks for the server of the URL `base`."""
        parts, host = urlsplit(address), urlsplit(base).hostname
        if not parts.hostname or not host:
            raise EnvironmentFailure(f"the site's hook fork printed {address[:80]!r}, which is no address: let it print http://host:port")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._hosts[host_name(host)] = f"[{parts.hostname}]:{port}" if ":" in parts.hostname else f"{parts.hostname}:{port}"

    @property
    def sockets(self) -> int:
        """Number of open WebSockets, which a fork will find closed."""
        return sum(end.is_socket for end in self._ends.values())

    def open(self, ident: int) -> None:
        """Serve a connection that the sandbox opened."""
        self._ends[ident] = _Connection()
        task = asyncio.ensure_future(self._serve(ident, self._ends[ident]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def hear(self, ident: int, data: bytes) -> None:
        """Take bytes that the sandbox sent on a connection; none mean its end."""
        if end := self._ends.get(ident):
            end.hear(data)

    def took(self, ident: int, size: int) -> None:
        """Take the acknowledgement that the sandbox has handed on `size` bytes."""
        if end := self._ends.get(ident):
            end.window.add(size)

    def shut(self) -> None:
        """End all connections and allow no more: the interceptor of their requests goes away."""
        self.admit((), ())
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """Shut, and wait until all connections have ended. Never raises; may be called twice."""
        self.shut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, ident: int, end: _Connection) -> None:
        try:
            await self._converse(ident, end)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass  # one side has gone, or does not speak SOCKS
        finally:
            del self._ends[ident]
        await self._send(ident, b"")

    async def _converse(self, ident: int, end: _Connection) -> None:
        address = await self._requested(ident, end)
        if address is None:
            return
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await self._dial(*self._resolve(*address))
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            await self._reply(ident, _UNREACHABLE)
            return
        try:
            await self._reply(ident, _GRANTED)
            end.socketed = self._admits(*address, self._sockets)
            await self._pump(ident, end, reader, writer)
        finally:
            writer.transport.abort() if end.aborted else writer.close()

    async def _requested(self, ident: int, end: _Connection) -> tuple[str, int] | None:
        """Return the host and port that a connection is for; None where it is not allowed."""
        given = await self._exactly(ident, end, 2)
        if given[0] != 5:
            raise ValueError("no SOCKS 5")
        await self._exactly(ident, end, given[1])
        await self._send(ident, _GREETING)
        _, command, _, kind = await self._exactly(ident, end, 4)
        size = (await self._exactly(ident, end, 1))[0] if kind == _NAME else {_FOUR: 4, _SIX: 16}[kind] if kind in (_FOUR, _SIX) else 0
        raw = await self._exactly(ident, end, size)
        host = raw.decode("ascii") if kind == _NAME else str(ipaddress.ip_address(raw))
        port = int(struct.unpack(">H", await self._exactly(ident, end, 2))[0])
        if command != 1:
            await self._reply(ident, _NO_SUCH_COMMAND)
            return None
        if not self._admits(host, port, self._allowed):
            await self._reply(ident, _FORBIDDEN)
            return None
        return host, port

    def _admits(self, host: str, port: int, origins: frozenset[str]) -> bool:
        shown = f"[{host}]" if ":" in host else host
        return any(origin(f"{scheme}://{shown}:{port}") in origins for scheme in ("http", "https"))

    def _resolve(self, host: str, port: int) -> tuple[str, int]:
        """Return the address of a server by the table of hosts."""
        known = self._hosts.get(host_name(host), host)
        address, colon, number = known.rpartition(":")
        if known != host and colon and number.isdigit():
            return address.strip("[]"), int(number)
        return known.strip("[]") if known != host else host, port

    async def _pump(self, ident: int, end: _Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy bytes in both directions until either side ends."""
        directions = [asyncio.ensure_future(self._outward(ident, end, writer)), asyncio.ensure_future(self._inward(ident, end, reader))]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _outward(self, ident: int, end: _Connection, writer: asyncio.StreamWriter) -> None:
        first = True
        while data := await end.reader.read(FRAME):
            if first and _is_socket(data):
                end.is_socket = True
                if not end.socketed:
                    end.aborted = True
                    return
            first = False
            writer.write(data)
            await writer.drain()
            await self._tell(do="took", end=ident, bytes=len(data))

    async def _inward(self, ident: int, end: _Connection, reader: asyncio.StreamReader) -> None:
        while True:
            data = await reader.read(await end.window.available(FRAME))
            if not data:
                return
            end.window.add(-len(data))
            await self._send(ident, data)

    async def _exactly(self, ident: int, end: _Connection, size: int) -> bytes:
        data = await end.reader.readexactly(size)
        await self._tell(do="took", end=ident, bytes=size)
        return data

    async def _reply(self, ident: int, what: int) -> None:
        await self._send(ident, bytes((5, what, 0, _FOUR, 0, 0, 0, 0, 0, 0)))


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
    """One connection: the bytes from the sandbox, and the window for those to it."""

    def __init__(self) -> None:
        self.reader, self.window = asyncio.StreamReader(limit=WINDOW), _SendWindow()
        self.socketed = self.is_socket = self.aborted = False

    def hear(self, data: bytes) -> None:
        if data:
            self.reader.feed_data(data)
        else:
            self.reader.feed_eof()


def _is_socket(first: bytes) -> bool:
    """Return whether a connection is a WebSocket, by the first bytes that Chromium sends on it.

    It asks for an upgrade or, in TLS, offers HTTP/1.1 alone, where for anything else it offers HTTP/2 first.
    """
    if first[:1] == b"\x16":
        return b"\x02h2" not in first
    return b"\r\nupgrade: websocket" in first.lower()


def proxy_arguments(outside: Outside, inner: Iterable[str], port: int) -> list[str]:
    """Return Chromium's arguments for the proxy at a port of its loopback. `inner`: hosts without the proxy, as in its bypass list."""
    found = [f"--proxy-server=socks5://127.0.0.1:{port}", f"--proxy-bypass-list={';'.join(inner)}"]
    if outside.trusted:
        found.append(f"--ignore-certificate-errors-spki-list={','.join(outside.trusted)}")
    return found
