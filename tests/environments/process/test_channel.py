"""Frames, good and bad."""

import asyncio
import io
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.process import guest
from exact.environments.process.channel import Channel
from exact.errors import EnvironmentFailure, UsageError


class Far:
    """The far end of a channel, played by the test."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def heard(self) -> dict[str, object]:
        head = await self.reader.readexactly(12)
        return guest.read_request(io.BytesIO(head + await self.reader.readexactly(guest.SIZES.unpack(head[4:])[0])))

    def say(self, data: bytes) -> None:
        self.writer.write(data)


@asynccontextmanager
async def channel(limit: int = 1 << 20) -> AsyncIterator[tuple[Channel, Far]]:
    met: asyncio.Future[Far] = asyncio.get_running_loop().create_future()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.set_result(Far(reader, writer))

    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        near, far = Channel(reader, writer, limit=limit), await met
        try:
            yield near, far
        finally:
            await near.close()
            for end in (writer, far.writer):
                end.close()
                await end.wait_closed()


def reply(id: int, value: object) -> bytes:
    return b"".join(guest.pack_frame({"id": id, "value": value}))


async def test_a_reply_belongs_to_its_call_and_brings_its_bytes() -> None:
    async with channel() as (near, far):
        call = asyncio.ensure_future(near.call("step", {"n": 1}))
        assert await far.heard() == {"id": 1, "op": "step", "arguments": {"n": 1}}
        far.say(reply(1, {"observation": {"text": "x", "screenshot": b"\x00\xff"}, "empty": b""}))
        assert await call == {"observation": {"text": "x", "screenshot": b"\x00\xff"}, "empty": b""}


async def test_noise_before_the_first_frame_is_skipped() -> None:
    async with channel() as (near, far):
        call = asyncio.ensure_future(near.call("open", {}))
        far.say(b"Welcome to your interpreter!\n" + reply(1, 7))
        assert await call == 7


@pytest.mark.parametrize(
    "garbage",
    [
        b"print('hello')\n",
        guest.MAGIC + guest.SIZES.pack(2**31, 0),
        guest.MAGIC + guest.SIZES.pack(5, 0) + b"{no}!",
        guest.MAGIC + guest.SIZES.pack(100_000, 0) + b"[" * 100_000,
        guest.MAGIC + guest.SIZES.pack(9, 0) + b'{"id": 2}',
        guest.MAGIC + guest.SIZES.pack(9, 3) + b'{"id": 1}abc',
    ],
)
async def test_an_invalid_frame_breaks_the_channel_and_the_calls_under_way(garbage: bytes) -> None:
    async with channel() as (near, far):
        first = asyncio.ensure_future(near.call("open", {}))
        far.say(reply(1, None))
        await first
        far.say(garbage.replace(b'"id": 1', b'"id": 2') if b'"id": 1' in garbage else garbage.replace(b'"id": 2', b'"id": 9'))
        with pytest.raises(EnvironmentFailure, match="violates the protocol"):
            await near.call("step", {})
        with pytest.raises(EnvironmentFailure, match="violates the protocol"):
            await near.call("reset", {})


@pytest.mark.parametrize("at", ["[]", '["value"]', '["error","a"]', '["value","b","c"]', '["value","a","b"]'])
async def test_a_binary_part_may_not_land_outside_the_value(at: str) -> None:
    async with channel() as (near, far):
        call = asyncio.ensure_future(near.call("open", {}))
        text = f'{{"id":1,"value":{{"a":1}},"binary":[{{"at":{at},"bytes":1}}]}}'.encode()
        far.say(guest.MAGIC + guest.SIZES.pack(len(text), 1) + text + b"x")
        with pytest.raises(EnvironmentFailure, match="violates the protocol"):
            await call


async def test_the_end_of_the_stream_fails_the_calls_under_way() -> None:
    async with channel() as (near, far):
        call = asyncio.ensure_future(near.call("step", {}))
        await far.heard()
        far.writer.close()
        with pytest.raises(EnvironmentFailure, match="the guest is gone: it ended"):
            await call
        assert near.lost and not near.busy


async def test_the_reply_to_a_cancelled_call_is_dropped_and_the_channel_continues() -> None:
    async with channel() as (near, far):
        first = asyncio.ensure_future(near.call("step", {}))
        await far.heard()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        assert near.busy
        second = asyncio.ensure_future(near.call("reset", {}))
        await far.heard()
        far.say(reply(1, "late") + reply(2, "right"))
        assert await second == "right" and not near.busy


async def test_a_request_over_the_limit_is_the_callers_mistake_and_breaks_nothing() -> None:
    async with channel(limit=100) as (near, far):
        with pytest.raises(UsageError, match="more than 100"):
            await near.call("step", {"text": "x" * 200})
        call = asyncio.ensure_future(near.call("step", {}))
        far.say(reply(2, 1))
        assert await call == 1


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), PLAIN, max_size=4))
def test_plain_data_crosses_as_it_is(arguments: dict[str, object]) -> None:
    frame = b"".join(guest.pack_frame({"id": 1, "op": "step", "arguments": arguments}))
    assert guest.read_request(io.BytesIO(frame)) == {"id": 1, "op": "step", "arguments": arguments}


def test_packing_leaves_the_message_as_it_was() -> None:
    message = {"value": {"screenshot": b"png"}}
    guest.pack_frame(message)
    assert message == {"value": {"screenshot": b"png"}}


def test_the_guest_takes_the_pipe_at_its_pace() -> None:
    out, into = os.pipe()
    os.set_blocking(out, False)
    guest.write_frame(into, [b"a" * 1000, b"", b"b"])
    assert os.read(out, 2000) == b"a" * 1000 + b"b"
    os.close(out)
    os.close(into)
