"""Connections to the outside, direct or through a proxy that speaks HTTP (RFC 9110, CONNECT)."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from exact.config import ProxyConfig
from exact.environments.browser.fork.init_process import FRAME
from exact.environments.sites.accounts import value_of
from exact.errors import UsageError

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, int], Awaitable[Ends]]
"""Connects to a host and port. Raises OSError."""


async def dial_directly(host: str, port: int) -> Ends:
    """Connect to a host and port directly."""
    return await asyncio.open_connection(host, port, limit=FRAME)


def dial_through(proxy: ProxyConfig) -> Dial:
    """Return what connects through the proxy of a configuration, or directly where there is none. Raises UsageError for another kind."""
    if not proxy.server:
        return dial_directly
    parts = urlsplit(proxy.server if "://" in proxy.server else f"http://{proxy.server}")
    if parts.scheme != "http" or not parts.hostname:
        raise UsageError(f"browser.proxy.server {proxy.server!r} cannot be used from a sandbox: write http://host:port")
    where, bypass = (parts.hostname, parts.port or 8080), {each.strip() for each in proxy.bypass.split(",")}
    head = ""
    if proxy.user:
        pair = f"{value_of('browser.proxy.user', proxy.user, os.environ)}:{value_of('browser.proxy.password', proxy.password, os.environ)}"
        head = f"Proxy-Authorization: Basic {base64.b64encode(pair.encode()).decode()}\r\n"

    async def dial(host: str, port: int) -> Ends:
        if host in bypass:
            return await dial_directly(host, port)
        reader, writer = await dial_directly(*where)
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{head}\r\n".encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise ConnectionError("the proxy does not speak HTTP") from error
        if b" 200 " not in answer.split(b"\r\n")[0] + b" ":
            writer.close()
            raise ConnectionError(f"the proxy refuses {name}")
        return reader, writer

    return dial
