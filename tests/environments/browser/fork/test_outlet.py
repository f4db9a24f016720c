"""Connections to the outside through the first process of an environment, without a sandbox: a plain process, whose outlet is reached
directly."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from exact.environments.browser.fork import init_process
from exact.environments.browser.fork.relay import Relay
from exact.environments.browser.network.dial import Destinations, Dialler
from exact.errors import EnvironmentFailure
from tests.environments.browser.fork.test_relay import BROWSER, KERNEL, plainly

HEAD = b"GET / HTTP/1.1\r\nHost: shop.test\r\n\r\n"
"""The bytes that begin a connection."""


class Way(NamedTuple):
    """An environment's relay, its outlet's port, and a server outside that says what it was sent, to which `shop.test` leads."""

    relay: Relay
    port: int
    sent: list[int]


class Nobody:
    """A host that receives nothing."""

    def send_of(self, *_: object, **__: object) -> None:
        pass


@asynccontextmanager
async def way_out() -> AsyncIterator[Way]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    sent: list[int] = []
    server = await asyncio.start_server(lambda reader, writer: _serve(reader, writer, sent), "127.0.0.1", 0)
    place = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with plainly(browser=[sys.executable, "-c", BROWSER], proxy_port=port) as plain:
        relay = Relay(plain, Destinations({"shop.test": place, "gone.test": "127.0.0.1:9"}), dialler=Dialler())  # type: ignore[arg-type]
        try:
            await relay.connect(seconds=20)
            relay.egress.admit(["http://shop.test", "http://gone.test"], [])
            yield Way(relay, port, sent)
        finally:
            await relay.close()
            server.close()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: list[int]) -> None:
    """Echoes; a line `flood` is answered with bytes without end."""
    try:
        while data := await reader.read(65536):
            if data != b"flood":
                writer.write(data)
            while data == b"flood":
                writer.write(bytes(65536))
                await writer.drain()
                sent.append(65536)
    except ConnectionError:
        pass
    finally:
        writer.transport.abort()


async def asked(way: Way, host: str, port: int = 80) -> tuple[int, asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a SOCKS connection, and return its reply and the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
    writer.write(b"\5\1\0")
    assert await reader.readexactly(2) == b"\5\0"
    writer.write(b"\5\1\0\3" + bytes((len(host),)) + host.encode() + port.to_bytes(2, "big"))
    return (await reader.readexactly(10))[1], reader, writer


async def test_bytes_go_both_ways_and_connections_do_not_mix() -> None:
    async with way_out() as way:
        ends = [await asked(way, "shop.test") for _ in range(3)]
        many = bytes(range(256)) * 8192
        for number, (answer, _, writer) in enumerate(ends):
            writer.write(HEAD + b"%d" % number + many)
            assert answer == 0
        for number, (_, reader, writer) in enumerate(ends):
            assert await reader.readexactly(len(HEAD) + 1 + len(many)) == HEAD + b"%d" % number + many
            writer.close()


@pytest.mark.parametrize(
    ("host", "port", "answer"), [("evil.test", 80, 2), ("shop.test", 81, 2), ("127.0.0.1", 80, 2), ("gone.test", 80, 4)]
)
async def test_only_allowed_origins_are_reached(host: str, port: int, answer: int) -> None:
    async with way_out() as way:
        found, reader, writer = await asked(way, host, port)
        assert found == answer and await reader.read() == b""
        writer.close()


async def test_a_client_that_does_not_speak_socks_is_disconnected() -> None:
    async with way_out() as way:
        reader, writer = await asyncio.open_connection("127.0.0.1", way.port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()


async def test_an_unread_connection_stops_its_server_and_delays_no_other() -> None:
    async with way_out() as way:
        _, flooded, flood = await asked(way, "shop.test")
        flood.write(HEAD)
        await flooded.readexactly(len(HEAD))
        flood.write(b"flood")
        await flooded.readexactly(1)
        _, reader, writer = await asked(way, "shop.test")
        writer.write(HEAD)
        await reader.readexactly(len(HEAD))
        before = -1
        while before != len(way.sent):  # until the server can send no more
            before = len(way.sent)
            for _ in range(200):
                writer.write(b"still here")
                assert await reader.readexactly(10) == b"still here"
        assert sum(way.sent) < KERNEL
        for each in (flood, writer):
            each.transport.abort()


async def test_a_websocket_is_let_through_only_where_it_may_be() -> None:
    async with way_out() as way:
        head = b"GET / HTTP/1.1\r\nHost: shop.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        _, reader, writer = await asked(way, "shop.test")
        writer.write(head)
        assert await reader.read() == b"" and way.relay.egress.sockets == 0
        way.relay.egress.admit(["http://shop.test"], ["http://shop.test"])
        _, reader, other = await asked(way, "shop.test")
        other.write(head)
        assert await reader.readexactly(len(head)) == head and way.relay.egress.sockets == 1
        for each in (writer, other):
            each.close()


async def test_a_paused_environment_sends_nothing_and_loses_nothing() -> None:
    async with way_out() as way:
        _, reader, writer = await asked(way, "shop.test")
        writer.write(HEAD)
        await reader.readexactly(len(HEAD))
        await way.relay.hold()
        writer.write(b"held")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await reader.readexactly(1)
        await way.relay.release()
        assert await reader.readexactly(4) == b"held"
        writer.close()


async def test_a_closed_outlet_ends_its_connections_and_accepts_none() -> None:
    async with way_out() as way:
        _, reader, writer = await asked(way, "shop.test")
        writer.write(HEAD)
        await reader.readexactly(len(HEAD))
        way.relay.egress.shut()
        answer, _, other = await asked(way, "shop.test")
        assert answer == 2
        for each in (writer, other):
            each.transport.abort()


async def test_after_a_restore_the_connections_of_before_are_closed_and_new_ones_made() -> None:
    async with way_out() as way:
        _, reader, writer = await asked(way, "shop.test")
        await way.relay.hold()
        way.relay._reading.cancel()
        after = Relay(way.relay.sandbox, way.relay.egress.destinations)
        await after.connect(path=way.relay.path, seconds=20)
        after.egress.admit(["http://shop.test"], [])
        assert await reader.read() == b""
        _, fresh, other = await asked(way, "shop.test")
        other.write(HEAD)
        assert await fresh.readexactly(len(HEAD)) == HEAD
        for each in (writer, other):
            each.close()
        await after.close()


def test_a_connection_that_is_made_because_another_was_dropped_is_not_dropped_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    outlet, close, clients = init_process.ProxyPort(Nobody()), init_process.close, list[socket.socket]()  # type: ignore[arg-type]
    outlet.listen(port)

    def connect() -> None:
        before = set(outlet.ends)
        clients.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        while not set(outlet.ends) - before:
            pass

    def closed(sock: socket.socket) -> None:
        monkeypatch.setattr(init_process, "close", close)
        close(sock)
        connect()

    connect()
    monkeypatch.setattr(init_process, "close", closed)
    outlet.drop()
    (ident,) = outlet.ends
    outlet.hear(ident, b"hello")
    assert clients[0].recv(5) == b"" and clients[1].recv(5) == b"hello"
    outlet.drop()
    for each in clients:
        each.close()


def test_an_address_of_a_fork_that_is_none_is_refused() -> None:
    with pytest.raises(EnvironmentFailure, match="the site's hook fork printed 'started', which is no address"):
        Destinations().move("http://shop.test", "started")
