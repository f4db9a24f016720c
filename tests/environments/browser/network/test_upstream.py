"""Connections through an upstream proxy, and those that bypass it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from exact.config import ProxyConfig
from exact.environments.browser.network.dial import Destination, Dialler, Route, Upstream, upstream_for
from exact.errors import UsageError

TLS = b"\x16\3\1\0\2h2"
"""Bytes that begin a connection with TLS."""


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
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def route(config: ProxyConfig, host: str, port: int) -> Route:
    return await Dialler(config).connect(Destination(host, host, port, is_mapped=False), lambda address: "")


async def opened(config: ProxyConfig, host: str, port: int, first: bytes) -> Route:
    """Connect by a proxy and send the first bytes."""
    made = await route(config, host, port)
    assert made.opening is not None
    try:
        made.writer.write(await made.opening(first))
    except OSError:
        made.writer.close()
        raise
    return made


async def test_an_encrypted_connection_is_asked_of_the_proxy_with_its_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_TEST_PROXY", "word")
    async with proxy(b"HTTP/1.1 200 Connection established\r\n\r\n") as (server, asked):
        made = await opened(ProxyConfig(server=server, user="ann", password="$EXACT_TEST_PROXY"), "shop.test", 443, TLS)
        assert await made.reader.readexactly(len(TLS)) == TLS
        made.writer.close()
    assert asked[0].startswith(b"CONNECT shop.test:443 HTTP/1.1\r\n") and b"Proxy-Authorization: Basic YW5uOndvcmQ=\r\n" in asked[0]


async def test_a_plain_request_has_its_whole_address_and_a_connection_of_its_own() -> None:
    request = b"POST /cart?a=1 HTTP/1.1\r\nHost: shop.test:8080\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi"
    async with proxy(b"HTTP/1.1 204 No Content\r\n\r\n") as (server, asked):
        made = await opened(ProxyConfig(server=f"http://{server}", user="ann", password="word"), "shop.test", 8080, request)
        await made.reader.readuntil(b"\r\n\r\n")
        made.writer.close()
    assert asked[0].startswith(b"POST http://shop.test:8080/cart?a=1 HTTP/1.1\r\nHost: shop.test:8080\r\n")
    assert b"keep-alive" not in asked[0] and b"\r\nConnection: close\r\nProxy-Authorization: Basic " in asked[0]


async def test_a_websocket_is_tunnelled() -> None:
    head = b"GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with proxy(b"HTTP/1.1 200 OK\r\n\r\n") as (server, asked):
        made = await opened(ProxyConfig(server=server), "shop.test", 80, head)
        assert await made.reader.readexactly(len(head)) == head
        made.writer.close()
    assert asked[0].startswith(b"CONNECT shop.test:80 ")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", b"SSH-2.0-x\r\n\r\n"])
async def test_a_proxy_that_refuses_is_a_connection_that_fails(answer: bytes) -> None:
    async with proxy(answer) as (server, _):
        with pytest.raises(OSError, match=r"the proxy refuses shop\.test:443"):
            await opened(ProxyConfig(server=server), "shop.test", 443, TLS)


async def test_a_socks_proxy_is_asked_by_name_with_its_credentials() -> None:
    heard = list[bytes]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for size, answer in ((4, b"\5\2"), (1 + 1 + 3 + 1 + 4, b"\1\0"), (4 + 1 + 9 + 2, b"\5\0\0\1\0\0\0\0\0\0")):
            heard.append(await reader.readexactly(size))
            writer.write(answer)
        writer.write(await reader.readexactly(len(TLS)))
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        place = f"socks5://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        made = await opened(ProxyConfig(server=place, user="ann", password="word"), "shop.test", 443, TLS)
        assert await made.reader.readexactly(len(TLS)) == TLS
        made.writer.close()
    assert heard[1:] == [b"\1\3ann\4word", b"\5\1\0\3\x09shop.test\x01\xbb"]


async def test_hosts_in_the_bypass_are_reached_directly() -> None:
    async with proxy(b"") as (server, asked):
        host, port = "127.0.0.1", int(server.rpartition(":")[2])
        made = await route(ProxyConfig(server="http://nowhere.test", bypass="a.test, 127.0.0.1"), host, port)
        assert made.opening is None
        made.writer.close()
    assert asked == []


@pytest.mark.parametrize(
    ("pattern", "host", "port", "expected"),
    [
        ("shop.test", "Shop.Test.", 80, True),
        ("shop.test", "a.shop.test", 80, False),
        (".shop.test", "a.shop.test", 80, True),
        ("*.shop.test", "a.shop.test", 80, True),
        ("shop.test:8080", "shop.test", 80, False),
        ("shop.test:8080", "shop.test", 8080, True),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.0.0.0/8", "::1", 80, False),
        ("<local>", "wiki", 80, True),
        ("*", "anything.example", 80, True),
    ],
)
def test_the_bypass_takes_hosts_ends_of_names_ports_and_networks(pattern: str, host: str, port: int, expected: bool) -> None:
    assert Upstream("http://proxy.test", (pattern,)).bypasses(host, port) is expected


def test_the_proxy_of_the_system_serves_where_none_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    assert upstream_for(ProxyConfig()) is None
    monkeypatch.setenv("https_proxy", "http://proxy.test:3128")
    monkeypatch.setenv("no_proxy", "corp.test, 10.0.0.0/8")
    found = upstream_for(ProxyConfig())
    assert found is not None and not found.bypasses("shop.test", 443)
    assert all(found.bypasses(host, 80) for host in ("corp.test", "a.corp.test", "10.0.0.1", "localhost", "127.0.0.1", "::1"))


def test_a_proxy_of_another_kind_says_what_to_write() -> None:
    with pytest.raises(UsageError, match="write http://host:port"):
        Dialler(ProxyConfig(server="socks4://127.0.0.1:1"))
