"""Connections to servers: direct ones, whose names are resolved once, or through an upstream proxy.

A name keeps the addresses that it had at first for as long as the browser runs, so nobody can move it to another machine meanwhile (DNS
rebinding). Behind an upstream proxy the proxy resolves names.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from exact.config import ProxyConfig
from exact.environments.browser.network.deny import Address, written_address
from exact.environments.browser.network.destinations import Destination
from exact.environments.browser.network.upstream import CHUNK, Opening, Upstream, upstream_for

_ADDRESS_SECONDS = 5.0
"""Seconds that one of several addresses may take to answer."""


class ForbiddenAddress(OSError):
    """A name that leads to an address that the browser may not reach."""


class Route(NamedTuple):
    """A connection to a server, or to the upstream proxy."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    opening: Opening | None = None
    """Prepares an upstream proxy for the browser's first bytes. None: they are sent as they are."""


Resolve = Callable[[str], Awaitable[tuple[Address, ...]]]


class Dialler:
    """Makes the connections of all contexts of one browser."""

    def __init__(self, proxy: ProxyConfig | None = None, resolve: Resolve | None = None) -> None:
        """Make a dialler. `proxy`: the upstream proxy. `resolve` returns the addresses of a name, or raises OSError.

        Raises UsageError for a proxy of a kind that cannot be used.
        """
        self._upstream: Upstream | None = upstream_for(proxy or ProxyConfig())
        self._resolve = resolve or look_up
        self._pins: dict[str, asyncio.Future[tuple[Address, ...]]] = {}
        """Addresses by name, from the first time that it was resolved."""

    async def connect(self, server: Destination, refusal: Callable[[Address], str]) -> Route:
        """Connect to a server. `refusal` returns why an address may not be reached; empty where it may. Raises OSError."""
        written = written_address(server.host)
        if written is not None and (why := refusal(written)):
            raise ForbiddenAddress(why)
        if self._upstream and not server.is_mapped and not self._upstream.bypasses(server.host, server.port):
            reader, writer = await self._upstream.connect()
            return Route(reader, writer, self._upstream.opening(server.host, server.port, reader, writer))
        addresses = (written,) if written is not None else await self._addresses(server.host)
        refused = [why for each in addresses if (why := refusal(each))]
        admitted = [each for each in addresses if not refusal(each)]
        if not admitted:
            raise ForbiddenAddress(refused[0] if refused else f"{server.host} has no address")
        return Route(*await _first_of(admitted, server.port))

    async def _addresses(self, name: str) -> tuple[Address, ...]:
        """Return the addresses of a name, which is resolved the first time only. A failure is not kept."""
        found = self._pins.get(name)
        if found is None:
            found = self._pins[name] = asyncio.ensure_future(self._resolve(name))
            found.add_done_callback(lambda done: self._pins.pop(name, None) if done.cancelled() or done.exception() else None)
        return await asyncio.shield(found)


async def look_up(name: str) -> tuple[Address, ...]:
    """Return the addresses that this machine finds for a name. Raises OSError."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise socket.gaierror(socket.EAI_NONAME, f"{name[:80]!r} is no host name") from error
    return tuple(dict.fromkeys(ipaddress.ip_address(str(each[4][0]).partition("%")[0]) for each in found))


async def _first_of(addresses: list[Address], port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address that answers. Raises the last one's error."""
    for address in addresses[:-1]:
        try:
            async with asyncio.timeout(_ADDRESS_SECONDS):
                return await asyncio.open_connection(str(address), port, limit=CHUNK)
        except (OSError, TimeoutError):
            continue
    return await asyncio.open_connection(str(addresses[-1]), port, limit=CHUNK)
