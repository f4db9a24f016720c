"""One connection that a browser asks for by SOCKS 5 (RFC 1928), made to an admitted destination only, and checked by its first bytes.

Chromium speaks HTTP and TLS itself, so cookies, streams, uploads, downloads and certificates work as without a proxy. The interceptor
decides about every request; this is a second barrier behind it, which also holds for connections that the interceptor does not see.

A port of the host's loopback at which a relay accepts connections.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import struct
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Protocol

from exact.environments.browser.network.body import Kind, kind_of, read_first
from exact.environments.browser.network.dial import CHUNK, Destination, Destinations, Dialler, ForbiddenAddress, Route

_CONNECT_SECONDS = 30.0
_FIRST_SECONDS = 60.0
"""Seconds within which a connection has to show its purpose. Chromium opens some before it needs them."""
_GREETING, _GRANTED, _FORBIDDEN, _UNREACHABLE, _NO_SUCH_COMMAND = b"\5\0", 0, 2, 4, 7
"""Messages and reply codes of SOCKS 5."""
_NAME, _FOUR, _SIX = 3, 1, 4
"""Address types of SOCKS 5."""


class Client(Protocol):
    """The browser's end of a connection."""

    async def exactly(self, size: int) -> bytes:
        """Read `size` bytes. Raises IncompleteReadError."""
        ...

    async def read(self) -> bytes:
        """Read the bytes that have come, at most CHUNK; empty at the end. Bytes read before count as handed on."""
        ...

    async def send(self, data: bytes) -> None:
        """Send bytes, and wait while the browser takes no more."""
        ...


class Listener(Protocol):
    """Learns which connections are not made."""

    def connection_refused(self, host: str, port: int, why: str, *, is_socket: bool = False) -> None:
        """Note a connection that may not be made. `is_socket`: it is a WebSocket to a server that may be read."""
        ...

    def connection_failed(self, host: str, port: int, error: OSError) -> None:
        """Note a connection that could not be made."""
        ...


class Tunnel:
    """A connection from a browser to a server."""

    def __init__(
        self,
        client: Client,
        destinations: Destinations,
        dialler: Dialler,
        listener: Callable[[], Listener | None],
        *,
        plain_tls: bool = True,
    ) -> None:
        """Make one. `listener` returns the listener for failures. `plain_tls`: the browser offers HTTP/2 in TLS for all but WebSockets."""
        self._client, self._destinations, self._dialler = client, destinations, dialler
        self._listener, self._plain_tls = listener, plain_tls
        self._asked = ("", 0)
        self._begun = self._aborted = False
        self.is_socket = False
        """Whether it carries a WebSocket."""

    async def serve(self) -> None:
        """Serve the connection until either side ends it, breaks off, or does not speak SOCKS."""
        with suppress(OSError, asyncio.IncompleteReadError, ValueError):
            await self._serve()

    async def _serve(self) -> None:
        address = await self._requested()
        if address is None:
            return
        host, port = self._asked = address
        if why := self._destinations.refusal(host, port):
            self._refuse(why)
            await self._reply(_FORBIDDEN)
            return
        route = await self._connect(self._destinations.server(host, port))
        if route is None:
            return
        try:
            await self._reply(_GRANTED)
            if not route.opening or await self._begin(route):  # an upstream proxy gets a request for the server first
                await self._pump(route)
        finally:
            route.writer.transport.abort() if self._aborted else route.writer.close()

    def is_admitted(self) -> bool:
        """Return whether a connection that is open may stay so, by the present admissions."""
        return not self._destinations.refusal(*self._asked) and (not self.is_socket or self._destinations.admits_socket(*self._asked))

    async def _requested(self) -> tuple[str, int] | None:
        """Return the host and port that the connection is for; None if something else is requested."""
        client = self._client
        given = await client.exactly(2)
        if given[0] != 5:
            raise ValueError("no SOCKS 5")
        await client.exactly(given[1])
        await client.send(_GREETING)
        _, command, _, kind = await client.exactly(4)
        size = (await client.exactly(1))[0] if kind == _NAME else {_FOUR: 4, _SIX: 16}[kind] if kind in (_FOUR, _SIX) else 0
        raw = await client.exactly(size)
        host = raw.decode("ascii") if kind == _NAME else str(ipaddress.ip_address(raw))
        port = int(struct.unpack(">H", await client.exactly(2))[0])
        if command != 1:
            await self._reply(_NO_SUCH_COMMAND)
            return None
        return host, port

    async def _connect(self, server: Destination) -> Route | None:
        """Connect to a server. Return None if it cannot be reached, or may not be."""
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._dialler.connect(server, lambda address: self._destinations.address_refusal(server, address))
        except ForbiddenAddress as error:
            self._refuse(str(error))
            await self._reply(_FORBIDDEN)
        except OSError as error:
            if listener := self._listener():
                listener.connection_failed(*self._asked, error)
            await self._reply(_UNREACHABLE)
        return None

    def _refuse(self, why: str, *, is_socket: bool = False) -> None:
        if listener := self._listener():
            listener.connection_refused(*self._asked, why, is_socket=is_socket)

    async def _begin(self, route: Route) -> bool:
        """Send the first bytes. Return False if there are none, or if they may not be sent."""
        async with asyncio.timeout(_FIRST_SECONDS):
            first = await read_first(self._client.read)
        if not first:
            return False
        kind = kind_of(first)
        is_socket = kind is Kind.SOCKET or (kind is Kind.SECURE_SOCKET and self._plain_tls)
        if kind is Kind.OTHER or (is_socket and not self._destinations.admits_socket(*self._asked)):
            self._aborted = True
            self._refuse(f"{kind.value}{' while exploring' if is_socket else ''}", is_socket=is_socket)
            return False
        self.is_socket, self._begun = is_socket, True
        route.writer.write(await route.opening(first) if route.opening else first)
        await route.writer.drain()
        return True

    async def _pump(self, route: Route) -> None:
        """Copy bytes in both directions until either side ends."""
        directions = [asyncio.ensure_future(self._outward(route)), asyncio.ensure_future(self._inward(route.reader))]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for direction in directions:
                direction.cancel()
            await asyncio.gather(*directions, return_exceptions=True)

    async def _outward(self, route: Route) -> None:
        if not self._begun and not await self._begin(route):
            return
        while data := await self._client.read():
            route.writer.write(data)
            await route.writer.drain()

    async def _inward(self, reader: asyncio.StreamReader) -> None:
        while data := await reader.read(CHUNK):
            await self._client.send(data)

    async def _reply(self, what: int) -> None:
        await self._client.send(bytes((5, what, 0, _FOUR, 0, 0, 0, 0, 0, 0)))


class LoopbackPort:
    """Accepts connections, each served by a task, until it is closed.

    It is not an asyncio.Server, which leaves a connection open that arrives while it is closed.
    """

    def __init__(
        self,
        serve: Callable[[socket.socket], Coroutine[Any, Any, None]],
        fail: Callable[[str], None],
        listening: socket.socket | None = None,
    ) -> None:
        """Listen at a free port. `serve` serves a connection; `fail` gets the reason if none can be accepted any more.

        `listening`: a socket that listens already, such as one in a browser's network namespace.
        """
        self._serve, self._fail = serve, fail
        self.tasks: set[asyncio.Task[None]] = set()
        """The tasks of the open connections."""
        self._socket = listening or socket.create_server(("127.0.0.1", 0))
        self._socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self._socket, self._accept)

    @property
    def number(self) -> int:
        """The number of the port."""
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Accept no more connections. The tasks continue. May be called twice."""
        if self._socket.fileno() < 0:
            return
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except (BlockingIOError, ConnectionError):  # the client has left
            return
        except OSError as error:
            asyncio.get_running_loop().remove_reader(self._socket)
            self._fail(f"no connection to it can be made: {error.strerror}")
            return
        task = asyncio.ensure_future(self._serve(connection))
        self.tasks.add(task)
        task.add_done_callback(partial(self._end, connection))

    def _end(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        """Close a connection that was served, or whose task was cancelled before it began."""
        self.tasks.discard(task)
        connection.close()
