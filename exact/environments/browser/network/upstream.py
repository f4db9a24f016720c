"""The upstream proxy of a configuration or of the system: HTTP (RFC 9110), HTTP over TLS, or SOCKS 5 (RFC 1928, 1929).

Through a proxy that speaks HTTP, encrypted connections and WebSockets are tunnelled by CONNECT. A plain request gets its whole address, as
proxies expect it, and has a connection of its own.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import ssl
import urllib.request
from collections.abc import Awaitable, Callable
from fnmatch import fnmatchcase
from ipaddress import ip_network
from urllib.parse import unquote, urlsplit

from exact.config import ProxyConfig
from exact.environments.browser.network.deny import written_address
from exact.environments.browser.network.first_bytes import Kind, kind_of
from exact.environments.sites.accounts import value_of
from exact.errors import UsageError
from exact.origins import host_name

CHUNK = 65536
"""Most bytes that are read at once."""
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opening = Callable[[bytes], Awaitable[bytes]]
"""Takes the browser's first bytes, prepares the proxy for them and returns what to send in their place. Raises OSError."""
_PORTS = {"http": 80, "https": 443, "socks5": 1080}
_OF_CONNECTION = re.compile(rb"\r\n(?:proxy-)?connection:[^\r\n]*", re.IGNORECASE)
_LOOPBACK = ("localhost", "*.localhost", "127.0.0.0/8", "::1")


class Upstream:
    """A proxy through which servers are reached."""

    def __init__(self, server: str, bypass: tuple[str, ...] = (), user: str = "", password: str = "") -> None:
        """Make one for `scheme://host:port`. `bypass`: hosts, `*.host`, `.host` and networks that are reached directly.

        Raises UsageError for an address that is none, or a scheme other than http, https and socks5.
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
        """Return what prepares the proxy for a connection to a host and port."""
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
        """Return a request with its whole address and the proxy's credentials, as the only one of its connection."""
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
    """Return the proxy of a configuration, or else of the system's environment variables; None where there is none. Raises UsageError."""
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
