"""Connections from a sandbox through a proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from exact.config import ProxyConfig
from exact.environments.browser.fork.dial import dial_through
from exact.errors import UsageError


@asynccontextmanager
async def proxy(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Run a proxy that gives one answer to every request and then echoes, and yield its address and the requests."""
    asked: list[bytes] = []
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(asyncio.IncompleteReadError):
            asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        while data := await reader.read(100):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def test_a_connection_is_asked_of_the_proxy_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_TEST_PROXY", "word")
    async with proxy(b"HTTP/1.1 200 Connection established\r\n\r\n") as (server, asked):
        dial = dial_through(ProxyConfig(server=server, user="ann", password="$EXACT_TEST_PROXY"))
        reader, writer = await dial("shop.test", 443)
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        writer.close()
    assert asked[0].startswith(b"CONNECT shop.test:443 HTTP/1.1\r\n") and b"Proxy-Authorization: Basic YW5uOndvcmQ=\r\n" in asked[0]


async def test_a_proxy_that_refuses_is_a_connection_that_fails() -> None:
    async with proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n") as (server, _):
        with pytest.raises(OSError, match=r"the proxy refuses shop\.test:80"):
            await dial_through(ProxyConfig(server=server))("shop.test", 80)


async def test_hosts_in_the_bypass_are_reached_directly() -> None:
    async with proxy(b"") as (server, asked):
        host, port = "127.0.0.1", int(server.rpartition(":")[2])
        _, writer = await dial_through(ProxyConfig(server="http://nowhere.test", bypass="a.test, 127.0.0.1"))(host, port)
        writer.close()
    assert asked == []


def test_a_proxy_of_another_kind_says_what_to_write() -> None:
    with pytest.raises(UsageError, match="write http://host:port"):
        dial_through(ProxyConfig(server="socks5://127.0.0.1:1"))
