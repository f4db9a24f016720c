"""Connections through the channel to a guest: bytes go both ways, and ends are passed on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from exact.environments.desktop.vm.document import Streams
from exact.environments.desktop.vm.tunnel import listening, open_tunnel
from exact.errors import EnvironmentFailure


class Guest:
    """A guest in this process, which can be lost."""

    def __init__(self) -> None:
        self.streams, self.calls, self.lost = Streams(), 0, False

    async def command(self, name: str, **arguments: Any) -> dict[str, Any]:
        assert name == "streams"
        self.calls += 1
        if self.lost:
            raise EnvironmentFailure("the guest was lost")
        return await asyncio.to_thread(lambda: self.streams.exchange(**arguments))


@asynccontextmanager
async def echo() -> AsyncIterator[int]:
    """Serve a port that says back, in capitals, what it hears until the end of a line, and then hangs up."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.readline()).upper())
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, limit=1 << 26) as server:
        yield int(server.sockets[0].getsockname()[1])


async def say(port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    answer = await heard(reader)
    writer.close()
    return answer


async def heard(reader: asyncio.StreamReader) -> bytes:
    """Return what comes until the other end hangs up, in either way."""
    with contextlib.suppress(ConnectionResetError):
        async with asyncio.timeout(20):
            return await reader.read()
    return b""


async def test_bytes_go_both_ways_on_several_connections_at_once() -> None:
    guest = Guest()
    async with echo() as first, echo() as second, open_tunnel(guest, (first, second)) as tunnel:
        long = b"a" * 9_000_000 + b"\n"
        texts = [b"one\n", long, b"\xc3\xa9\x00z\n"]
        answers = await asyncio.gather(*(say(tunnel.ports[at % 2], text) for at, text in enumerate(texts)))
    assert answers == [text.upper() for text in texts]
    assert not guest.streams._open, "the guest keeps no connection"


async def test_nothing_is_asked_of_the_guest_without_connections() -> None:
    guest = Guest()
    async with open_tunnel(guest, (1,)):
        await asyncio.sleep(0.05)
    assert guest.calls == 0


async def test_a_port_where_nobody_listens_hangs_up() -> None:
    async with echo() as port:
        pass
    async with open_tunnel(Guest(), (port,)) as tunnel:
        assert await say(tunnel.ports[0], b"hello\n") == b""


async def test_a_lost_guest_hangs_up_and_is_an_infrastructure_failure() -> None:
    guest = Guest()
    guest.lost = True
    with pytest.raises(EnvironmentFailure, match="the guest was lost"):
        async with open_tunnel(guest, (1,)) as tunnel:
            assert await say(tunnel.ports[0], b"hello\n") == b""


async def test_a_connection_that_is_left_open_ends_with_the_tunnel() -> None:
    guest = Guest()
    async with echo() as port:
        async with open_tunnel(guest, (port,)) as tunnel:
            reader, writer = await asyncio.open_connection("127.0.0.1", tunnel.ports[0])
            writer.write(b"no end")
            await writer.drain()
        assert await heard(reader) == b""
        writer.close()
    assert not guest.streams._open


async def test_the_next_tunnel_has_the_same_ports_and_answers_a_connection_that_was_made_before_it() -> None:
    guest = Guest()
    async with echo() as port:
        with listening(1) as doors:
            async with open_tunnel(guest, (port,), doors) as tunnel:
                before = tunnel.ports
                assert await say(before[0], b"one\n") == b"ONE\n"
            waiting = asyncio.ensure_future(say(before[0], b"two\n"))
            async with open_tunnel(guest, (port,), doors) as tunnel:
                assert (tunnel.ports, await waiting) == (before, b"TWO\n")
