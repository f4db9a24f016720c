"""Connections to servers: direct ones, whose names are resolved once, or through an upstream proxy.

A name keeps the addresses that it had at first for as long as the browser runs, so that it cannot move to another machine meanwhile (DNS
rebinding). Behind an upstream proxy the proxy resolves names.

The destinations of one browser: which servers its connections may reach, and the machines to which the table of hosts maps them.

The upstream proxy of a configuration or of the system: HTTP (RFC 9110), HTTP over TLS, or SOCKS 5 (RFC 1928, 1929).

Through a proxy that speaks HTTP, encrypted connections and WebSockets are tunnelled by CONNECT. A plain request gets its whole address, as
proxies expect it, and has a separate connection.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import os
import re
import socket
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_network
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from exact.config import ProxyConfig
from exact.environments.browser.network.body import Kind, kind_of
from exact.environments.browser.network.deny import Address, DenyList, is_nearby, is_private, written_address
from exact.environments.sites.accounts import value_of
from exact.errors import EnvironmentFailure, UsageError
from exact.origins import host_name, origin

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
        """Connect to a server. `refusal` returns the reason if an address may not be reached; empty if it may. Raises OSError."""
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
        """Return the addresses of a name, which is resolved only the first time. A failure is not stored."""
        found = self._pins.get(name)
        if found is None:
            found = self._pins[name] = asyncio.ensure_future(self._resolve(name))
            found.add_done_callback(lambda done: self._pins.pop(name, None) if done.cancelled() or done.exception() else None)
        return await asyncio.shield(found)


async def look_up(name: str) -> tuple[Address, ...]:
    """Return the addresses that this machine finds for a name. Raises OSError.

    `localhost` and all names below it are this machine itself, as in browsers (RFC 6761), whatever a resolver says.
    """
    if name == "localhost" or name.endswith(".localhost"):
        return ipaddress.ip_address("127.0.0.1"), ipaddress.ip_address("::1")
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


_LOCAL_SUFFIXES = ("localhost", "test", "local", "internal", "home.arpa")
"""Ends of names that are not public (RFC 6761, 6762, 8375, and ICANN for `internal`), so that nobody outside can point them here."""


class Destination(NamedTuple):
    """The server that a connection is made to."""

    name: str
    """Host as the browser asks for it, in its one form."""
    host: str
    """Host or address that is connected to."""
    port: int
    is_mapped: bool
    """Whether the table of hosts gives the address."""


class Destinations:
    """Servers that a browser may reach. Nothing is reached before `admit`."""

    def __init__(self, hosts: Mapping[str, str] | None = None, deny: DenyList | None = None) -> None:
        """Make destinations. `hosts`: addresses of names or of `name:port`, as in Outside. `deny`: servers that are never reached."""
        self._hosts = {_key(name): address for name, address in (hosts or {}).items()}
        self._deny = deny or DenyList()
        self._allowed: frozenset[str] = frozenset()
        self._sockets: frozenset[str] = frozenset()
        self._addresses: frozenset[tuple[Address, int]] = frozenset()
        """Addresses and ports that allowed origins are written with."""

    def admit(self, allowed: Iterable[str], sockets: Iterable[str]) -> None:
        """Allow connections to these origins from now on. `sockets`: origins that WebSockets may be opened to."""
        self._allowed, self._sockets = frozenset(allowed), frozenset(sockets)
        self._addresses = frozenset(found for each in self._allowed if (found := _written(each)))

    def move(self, base: str, address: str) -> None:
        """Connect to the URL `address` from now on when the browser asks for the server of the URL `base`."""
        parts, host = urlsplit(address), urlsplit(base).hostname
        if not parts.hostname or not host:
            raise EnvironmentFailure(f"the site's hook fork printed {address[:80]!r}, which is no address: let it print http://host:port")
        port = parts.port or (443 if parts.scheme == "https" else 80)
        self._hosts[_key(host)] = f"[{parts.hostname}]:{port}" if ":" in parts.hostname else f"{parts.hostname}:{port}"

    def refusal(self, host: str, port: int) -> str:
        """Return the reason if the browser may not connect to a host and port; empty if it may."""
        shown = _origins(host, port)
        if not any(each in self._allowed for each in shown):
            return f"{host}:{port} is outside the task's origins"
        if denied := [why for each in shown if each in self._allowed and (why := self._deny.refusal(each))]:
            return denied[0]
        return ""

    def admits_socket(self, host: str, port: int) -> bool:
        """Return whether a WebSocket may be opened to a host and port."""
        return any(each in self._sockets for each in _origins(host, port))

    def server(self, host: str, port: int) -> Destination:
        """Return the server for a host and port, by the table of hosts."""
        name = host_name(host)
        given = self._hosts.get(f"{name}:{port}") or self._hosts.get(name)
        if given is None:
            return Destination(name, name.strip("[]"), port, is_mapped=False)
        address, colon, number = given.rpartition(":")
        if colon and number.isdigit() and (written_address(given) is None or given.startswith("[")):
            return Destination(name, address.strip("[]"), int(number), is_mapped=True)
        return Destination(name, given.strip("[]"), port, is_mapped=True)

    def address_refusal(self, server: Destination, address: Address) -> str:
        """Return the reason if a server may not be reached at an address that its name led to; empty if it may.

        A public name may not lead to a private address: its owner would reach this machine or its network through the browser. No name
        may lead to a server of metadata.
        """
        if self._deny.denies_address(address):
            return f"{server.name} leads to {address}, which is on the deny-list"
        if server.is_mapped or (address, server.port) in self._addresses or not is_private(address):
            return ""
        name, nearby = server.name, is_nearby(address)
        local = "." not in name or any(name == each or name.endswith(f".{each}") for each in _LOCAL_SUFFIXES)
        if local and not nearby:
            return ""
        shown = _origins(str(address), server.port)[server.port == 443]
        kind = "special" if nearby else "private"
        way_out = f"if it belongs to the task, allow {shown} with --allow-origin, or name the host in `hosts`"
        return f"{name} leads to the {kind} address {address}: {way_out}"


def _key(name: str) -> str:
    """Return a name, or `name:port`, in the form in which the table of hosts is searched."""
    if written_address(name) is not None:
        return host_name(name.strip("[]"))
    host, colon, port = name.rpartition(":")
    return f"{host_name(host.strip('[]'))}:{port}" if colon and port.isdigit() else host_name(name)


def _written(origin: str) -> tuple[Address, int] | None:
    """Return the address and port of an origin that is written with an address."""
    parts = urlsplit(origin)
    address = written_address(parts.hostname or "")
    return (address, parts.port or (443 if parts.scheme == "https" else 80)) if address else None


def _origins(host: str, port: int) -> tuple[str, ...]:
    """Return the origins that a host and port may be."""
    shown = f"[{host}]" if ":" in host else host
    return tuple(origin(f"{scheme}://{shown}:{port}") for scheme in ("http", "https"))


CHUNK = 65536
"""Maximum bytes that are read at once."""
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opening = Callable[[bytes], Awaitable[bytes]]
"""Takes the browser's first bytes, prepares the proxy for them and returns the bytes to send in their place. Raises OSError."""
_PORTS = {"http": 80, "https": 443, "socks5": 1080}
_OF_CONNECTION = re.compile(rb"\r\n(?:proxy-)?connection:[^\r\n]*", re.IGNORECASE)
_LOOPBACK = ("localhost", "*.localhost", "127.0.0.0/8", "::1")


class Upstream:
    """A proxy through which servers are reached."""

    def __init__(self, server: str, bypass: tuple[str, ...] = (), user: str = "", password: str = "") -> None:
        """Make one for `scheme://host:port`. `bypass`: hosts, `*.host`, `.host` and networks that are reached directly.

        Raises UsageError for an invalid address, or a scheme other than http, https and socks5.
        """
        parts = urlsplit(server if "://" in server else f"http://{server}")
        self._scheme = "socks5" if parts.scheme in ("socks", "socks5", "socks5h") else parts.scheme
        if self._scheme not in _PORTS or not parts.hostname:
            raise UsageError(
                f"browser.proxy.server {server!r} cannot be used: write http://host:port, https://host:port or socks5://host:port"
            )
        self._host, self._port = parts.hostname, parts.port or _PORTS[self._scheme]
        self._bypass = bypass
        self._user, self._password = user or unquote(parts.username or ""), password or unquote(parts.password or "")

    def bypasses(self, host: str, port: int) -> bool:
        """Return whether a host is reached directly."""
        return any(_matches(pattern, host_name(host), port) for pattern in self._bypass)

    async def connect(self) -> Ends:
        """Connect to the proxy. Raises OSError."""
        tls = ssl.create_default_context() if self._scheme == "https" else None
        return await asyncio.open_connection(self._host, self._port, limit=CHUNK, ssl=tls)

    def opening(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Opening:
        """Return the step that prepares the proxy for a connection to a host and port."""
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

        async def opened(first: bytes) -> bytes:
            if self._scheme == "socks5":
                await self._ask_socks(host, port, reader, writer)
            elif kind_of(first) is Kind.HTTP:
                return self._whole(first, name.removesuffix(":80"))
            else:
                await self._ask_http(name, reader, writer)
            return first

        return opened

    @property
    def _credentials(self) -> bytes:
        if not self._user:
            return b""
        return b"\r\nProxy-Authorization: Basic " + base64.b64encode(f"{self._user}:{self._password}".encode())

    def _whole(self, first: bytes, name: str) -> bytes:
        """Return a request with its whole address and the proxy's credentials, for a connection of one request."""
        head, end, body = first.partition(b"\r\n\r\n")
        method, _, rest = head.partition(b" ")
        head = _OF_CONNECTION.sub(b"", b"%b http://%b%b" % (method, name.encode(), rest))
        return b"%b\r\nConnection: close%b%b%b" % (head, self._credentials, end, body)

    async def _ask_http(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}".encode() + self._credentials + b"\r\n\r\n")
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.LimitOverrunError, asyncio.IncompleteReadError) as error:
            raise ConnectionError("the proxy does not speak HTTP") from error
        if b" 200 " not in answer.split(b"\r\n")[0] + b" ":
            raise ConnectionError(f"the proxy refuses {name}")

    async def _ask_socks(self, host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            writer.write(b"\5\2\0\2" if self._user else b"\5\1\0")
            if (await reader.readexactly(2))[1] == 2:
                user, word = self._user.encode(), self._password.encode()
                writer.write(bytes((1, len(user))) + user + bytes((len(word),)) + word)
                if (await reader.readexactly(2))[1]:
                    raise ConnectionError("the proxy refuses browser.proxy.user")
            name = host.encode("idna") if written_address(host) is None else host.encode()
            writer.write(b"\5\1\0\3" + bytes((len(name),)) + name + port.to_bytes(2, "big"))
            answer = await reader.readexactly(4)
            size = {1: 4, 4: 16}.get(answer[3]) or (await reader.readexactly(1))[0]
            await reader.readexactly(size + 2)
        except (asyncio.IncompleteReadError, UnicodeError, ValueError) as error:
            raise ConnectionError("the proxy does not speak SOCKS 5") from error
        if answer[1]:
            raise ConnectionError(f"the proxy refuses {host}:{port}")


def upstream_for(proxy: ProxyConfig) -> Upstream | None:
    """Return the proxy of a configuration, or else of the system's environment variables; None if there is none. Raises UsageError."""
    if proxy.server:
        user, password = proxy.user, proxy.password
        if user:
            user = value_of("browser.proxy.user", user, os.environ)
            password = value_of("browser.proxy.password", password, os.environ)
        return Upstream(proxy.server, tuple(filter(None, map(str.strip, proxy.bypass.split(",")))), user, password)
    found = urllib.request.getproxies_environment()
    if not (server := found.get("https") or found.get("http") or found.get("all")):
        return None
    own = tuple(filter(None, map(str.strip, found.get("no", "").split(","))))
    return Upstream(server, (*own, *(f".{each}" for each in own if not each.startswith((".", "*"))), *_LOOPBACK))


def _matches(pattern: str, host: str, port: int) -> bool:
    name, colon, number = pattern.rpartition(":")
    if colon and number.isdigit() and written_address(pattern) is None:
        if int(number) != port:
            return False
        pattern = name
    address = written_address(host)
    if address is not None:
        try:
            return address in ip_network(pattern.strip("[]"), strict=False)
        except (ValueError, TypeError):
            return fnmatchcase(host, pattern)
    pattern = pattern.lower()
    return fnmatchcase(host, f"*{pattern}" if pattern.startswith(".") else pattern) or (pattern == "<local>" and "." not in host)
