"""The wall in front of a plain browser: a SOCKS proxy of this process for each browser context, which no traffic of the browser bypasses.

The browser resolves no names, and its own proxy refuses everything, so that traffic outside of all contexts reaches nothing. If this user
may make one, the browser is in a network namespace in which the proxies are the only addresses.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.dial import CHUNK, Destinations, Dialler
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.tunnel import LoopbackPort, Tunnel


class Wall:
    """The proxy of one browser context. It admits connections that the context's gate allows, none before it has one."""

    def __init__(
        self, dialler: Dialler, hosts: Mapping[str, str], deny: DenyList, *, plain_tls: bool = True, listening: socket.socket | None = None
    ) -> None:
        """Listen at a port of the loopback. `hosts`, `deny`: as in Destinations. `plain_tls`: as in Tunnel.

        `listening`: as in LoopbackPort.
        """
        self._dialler, self._plain_tls = dialler, plain_tls
        self._destinations = Destinations(hosts, deny)
        self._gate: Gate | None = None
        self._tunnels: dict[asyncio.Task[None], Tunnel] = {}
        self._port = LoopbackPort(self._serve, lambda why: None, listening)

    @property
    def address(self) -> str:
        """Address of the proxy, as browsers take it."""
        return f"socks5://127.0.0.1:{self._port.number}"

    def follow(self, gate: Gate) -> None:
        """Admit from now on the connections that a gate allows. Connections that it does not admit are ended."""
        self._gate = gate
        self._destinations.admit(gate.rules.allowed, gate.socket_origins)
        for task, tunnel in list(self._tunnels.items()):
            if not tunnel.is_admitted():
                task.cancel()

    def close(self) -> None:
        """End all connections and accept no more."""
        self._port.close()
        for task in self._port.tasks:
            task.cancel()

    async def _serve(self, made: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=made, limit=CHUNK)
        client = _Streams(reader, writer)
        tunnel = Tunnel(client, self._destinations, self._dialler, lambda: self._gate, plain_tls=self._plain_tls)
        task = asyncio.current_task()
        assert task is not None
        self._tunnels[task] = tunnel
        try:
            await tunnel.serve()
        finally:
            del self._tunnels[task]
            writer.close()


class _Streams:
    """The browser's end of a connection at the loopback."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def exactly(self, size: int) -> bytes:
        return await self._reader.readexactly(size)

    async def read(self) -> bytes:
        return await self._reader.read(CHUNK)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


WALLED = (
    # Names are resolved by the wall only; without the exception the wall itself is not found.
    "--host-resolver-rules=MAP * ~NOTFOUND,EXCLUDE 127.0.0.1",
    "--proxy-bypass-list=<-loopback>",
)
"""Chromium's arguments that leave the wall as the only way out, besides the address of a proxy."""
