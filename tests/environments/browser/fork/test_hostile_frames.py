"""Frames and messages of a sandbox that hostile pages have taken over: a typed failure within a second, never a reader that is dead."""

from __future__ import annotations

import asyncio
import json
import random
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from exact.environments.browser.fork.init_process import FRAME, LINE, OUTWARD, WINDOW
from exact.environments.browser.fork.relay import Relay
from exact.errors import EnvironmentFailure
from exact.machine import Child
from tests.environments.browser.fork.test_relay import Plain

READY = b'{"ready": "/devtools/browser/1"}'


def frame(ident: int, data: bytes) -> bytes:
    return struct.pack("<II", ident, len(data)) + data


class Pipe:
    """A sandbox's standard streams, of which a test writes the output."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader()
        self.stdin = self
        self.process = None

    def write(self, data: bytes) -> None:
        pass

    async def drain(self) -> None:
        pass

    async def why(self) -> str:
        return "it ended"


@asynccontextmanager
async def hostile(said: bytes) -> AsyncIterator[Relay]:
    """A relay to a sandbox whose browser listens, and which says something after that."""
    pipe = Pipe()
    relay = Relay(pipe)  # type: ignore[arg-type]
    try:
        pipe.stdout.feed_data(frame(0, READY))
        await relay.connect(seconds=5)
        pipe.stdout.feed_data(said)
        pipe.stdout.feed_eof()
        yield relay
    finally:
        await relay.close()


def socket_message(size: int, data: bytes) -> bytes:
    return b"\x81\x7f" + struct.pack("!Q", size) + data


OPENED = b"HTTP/1.1 101 Switching Protocols\r\n\r\n"
SPEECH = {
    "no bytes": b'{"took": 1}',
    "deep JSON": b"[" * 60_000,
    "deep object": b'{"held": ' * 7000,
    "an array": b"[1, 2]",
    "a number": b"7",
    "null": b"null",
    "no JSON": b"\xff\xfe",
    "nothing": b"",
    "text for a number": b'{"open": "1"}',
    "a negative size": b'{"took": 1, "bytes": -5}',
    "a huge size": b'{"took": 1, "bytes": 99999999999999999999999}',
    "a path that is none": b'{"ready": 5}',
    "a digest alone": b'{"digest": "a"}',
    "made of numbers": b'{"made": [1, 2]}',
    "died of nothing": b'{"died": "the browser"}',
    "an unknown message": b'{"reboot": true}',
    "a connection below": b'{"open": 5}',
    "not a number": b'{"open": NaN}',
}


@pytest.mark.parametrize("said", SPEECH.values(), ids=SPEECH.keys())
async def test_a_malformed_message_is_a_failure_at_once(said: bytes) -> None:
    async with hostile(frame(0, said)) as relay:
        async with asyncio.timeout(1):
            await relay.ended()
        with pytest.raises(EnvironmentFailure, match="the environment is gone: it does not keep to the protocol"):
            await relay.line.send("Browser.getVersion")


LINES = {
    "a message of 200 MiB": OPENED + socket_message(200 << 20, b"x" * 1000),
    "a message of an exbibyte": OPENED + socket_message(1 << 60, b""),
    "deep JSON": OPENED + socket_message(50_000, b"[" * 50_000),
    "a number": OPENED + b"\x81\x011",
    "no JSON": OPENED + b"\x81\x02{{",
    "an event without parameters": OPENED + socket_message(40, b'{"method": "Target.detachedFromTarget"}  '[:40]),
    "a head without an end": b"HTTP/1.1 101 " + b"x" * 60_000,
}


@pytest.mark.parametrize("said", LINES.values(), ids=LINES.keys())
async def test_a_malformed_conversation_is_a_failure_at_once(said: bytes) -> None:
    frames = b"".join(frame(LINE, said[start : start + 30_000]) for start in range(0, len(said), 30_000))
    async with hostile(frames * 2) as relay:
        async with asyncio.timeout(1):
            await relay.ended()
        assert relay.lost.startswith("it does not keep to the protocol")


async def test_a_connection_may_not_have_more_in_flight_than_its_window() -> None:
    ident = OUTWARD + 1
    flood = frame(ident, bytes(FRAME)) * (WINDOW // FRAME + 1)
    async with hostile(frame(0, json.dumps({"open": ident}).encode()) + flood) as relay:
        async with asyncio.timeout(1):
            await relay.ended()
        assert "bytes in flight" in relay.lost


async def test_a_sandbox_may_not_open_connections_without_end() -> None:
    many = b"".join(frame(0, b'{"open": %d}' % (OUTWARD + number)) for number in range(3000))
    async with hostile(many) as relay:
        async with asyncio.timeout(1):
            await relay.ended()
        assert "one of more than 1024" in relay.lost


@pytest.mark.parametrize("seed", range(3))
async def test_300_random_frames_are_failures_or_nothing(seed: int) -> None:
    chance = random.Random(seed)
    words = [
        *SPEECH.values(),
        READY,
        b'{"held": true}',
        b'{"made": ["/x"]}',
        b'{"open": 2147483650}',
        b'{"took": 2147483650, "bytes": 9}',
        OPENED,
    ]
    for _ in range(100):
        said = bytearray(b"".join(frame(chance.choice((0, 0, 1, LINE, OUTWARD + 2)), chance.choice(words)) for _ in range(3)))
        for _ in range(chance.randrange(4)):
            said[chance.randrange(len(said))] = chance.randrange(256)
        async with hostile(bytes(said)) as relay:
            async with asyncio.timeout(1):
                await relay.ended()
            assert relay.lost
            with pytest.raises(EnvironmentFailure):
                await relay.line.send("Browser.getVersion")


async def test_200_mebibytes_on_one_connection_end_the_environment_before_they_are_read() -> None:
    start = f"import os, struct\nos.write(1, struct.pack('<II', 0, {len(READY)}) + {READY!r})\n"
    flood = (
        f"head = struct.pack('<II', {LINE}, 65536) + bytes(65536)\ntry:\n  for _ in range(3200): os.write(1, head)\nexcept OSError: pass"
    )
    code = start + flood
    process = await Child.start(sys.executable, "-c", code, stdin=-1, stdout=-1)
    relay = Relay(Plain(process))  # type: ignore[arg-type]
    try:
        await relay.connect(seconds=20)
        async with asyncio.timeout(5):
            await relay.ended()
        assert len(relay.line.state.received) < 1 << 20
        with pytest.raises(EnvironmentFailure):
            await relay.line.send("Browser.getVersion")
    finally:
        process.kill()
        await process.end()
        await relay.close()
