"""Ports of this machine's loopback that lead into a desktop's sandbox, through the channel to its guest."""

from __future__ import annotations

import asyncio
import base64
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from itertools import count
from typing import Any, Protocol

import msgspec

from exact.errors import EnvironmentFailure

_SOON, _LATER = 0.01, 0.1
"""Seconds that the guest waits for data in one exchange: after traffic, and while there is none."""
_QUIET_EXCHANGES = 20
_LARGEST = 16 << 20
"""Maximum bytes of one connection that are sent in one exchange."""


class CommandedGuest(Protocol):
    """A worker whose guest takes the command `streams`: a desktop that serves OSWorld's interface."""

    async def command(self, name: str, **arguments: object) -> dict[str, Any]: ...


class _Exchanged(msgspec.Struct):
    received: dict[str, bytes]
    ended: list[str]


class PortTunnel:
    """Open ports and the connections through them. Made by `open_tunnel`."""

    def __init__(self, worker: CommandedGuest) -> None:
        self._worker = worker
        self._ids = count(1)
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._opened: dict[str, int] = {}
        self._sent: dict[str, bytearray] = {}
        self._closed: list[str] = []
        self._wake, self._ending = asyncio.Event(), False
        self.ports: tuple[int, ...] = ()
        """Ports of this machine, in the order of the guest's ports."""
        self.failure: EnvironmentFailure | None = None
        """Reason why the guest was lost, if it was."""

    def end(self) -> None:
        """Close all connections, and let the pump end."""
        self._ending = True
        for writer in self._writers.values():
            writer.close()
        self._wake.set()

    async def accept(self, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection to a port of the guest until it ends."""
        id = str(next(self._ids))
        self._writers[id], self._opened[id], self._sent[id] = writer, port, bytearray()
        self._wake.set()
        try:
            while data := await reader.read(1 << 18):
                self._sent[id] += data
                self._wake.set()
        except ConnectionError:
            pass
        finally:
            if self._writers.pop(id, None):
                self._closed.append(id)
                self._wake.set()
            writer.close()

    async def pump(self) -> None:
        """Exchange bytes with the guest while there are connections, until `end` was called and the guest has closed all of them."""
        quiet = 0
        while True:
            if not self._writers and not self._closed:
                if self._ending:
                    return
                self._wake.clear()
                await self._wake.wait()
                continue
            try:
                moved = await self._exchange(_SOON if quiet < _QUIET_EXCHANGES else _LATER)
            except EnvironmentFailure as failure:
                self.failure = failure
                for writer in self._writers.values():
                    writer.close()
                return
            quiet = 0 if moved else quiet + 1

    async def _exchange(self, seconds: float) -> bool:
        opened, self._opened = self._opened, {}
        closed, self._closed = self._closed, []
        sent = {id: bytes(data[:_LARGEST]) for id, data in self._sent.items() if data}
        for id, data in sent.items():
            del self._sent[id][: len(data)]
        for id in closed:
            self._sent.pop(id, None)
        coded = {id: base64.b64encode(data).decode() for id, data in sent.items()}
        told = await self._worker.command("streams", opened=opened, sent=coded, closed=closed, seconds=0.0 if self._closed else seconds)
        found = msgspec.convert(told, _Exchanged)
        for id, data in found.received.items():
            if writer := self._writers.get(id):
                writer.write(data)
        for id in found.ended:
            self._sent.pop(id, None)
            if writer := self._writers.pop(id, None):
                writer.close()
        return bool(sent or found.received or found.ended or opened)


@contextmanager
def listening(number: int) -> Iterator[tuple[socket.socket, ...]]:
    """Listen on so many free ports of this machine's loopback. A connection that is made while no tunnel is open waits for the next one."""
    with ExitStack() as stack:
        yield tuple(stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number))


@asynccontextmanager
async def open_tunnel(worker: CommandedGuest, ports: Sequence[int], sockets: Sequence[socket.socket] = ()) -> AsyncIterator[PortTunnel]:
    """Lead ports of this machine's loopback to ports of a guest while the block runs.

    `sockets`: those of `listening`, one for each port, which stay open; by default new ones. No other call of the worker may be made while
    there are connections. Raises EnvironmentFailure at the end if the guest was lost.
    """
    tunnel, servers = PortTunnel(worker), list[asyncio.Server]()
    pump = asyncio.ensure_future(tunnel.pump())
    try:
        with ExitStack() as stack:
            for port, each in zip(ports, sockets or stack.enter_context(listening(len(ports))), strict=True):
                servers.append(await asyncio.start_server(partial(tunnel.accept, port), sock=each.dup()))
        tunnel.ports = tuple(int(server.sockets[0].getsockname()[1]) for server in servers)
        yield tunnel
    finally:
        for server in servers:
            server.close()
        tunnel.end()
        try:
            await pump
        finally:
            pump.cancel()
    if tunnel.failure:
        raise tunnel.failure
