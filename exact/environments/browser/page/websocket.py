"""Our own CDP connection to a sandbox's browser, over WebSocket. A restored fork resumes it at the point of the snapshot.

Playwright's connections end with a fork, and with them request interception by `Fetch`. This connection stays open inside the sandbox, so
no request of a restored browser is sent before the request policy has allowed it.
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
from collections.abc import Awaitable, Callable, Collection
from typing import NamedTuple

from exact.environments.browser.page.cdp import KEPT, MOST_BYTES, CdpConnection, decoded, refused

_NUMBER_STEP = 1 << 20
"""Added to the numbers of commands at a restore, so that answers to earlier commands are ignored."""
MESSAGE = 128 << 20
"""Bytes of a message above which a browser counts as broken. Below, one above MOST_BYTES is dropped."""
_HEAD = 65536
"""Maximum bytes of the head with which a WebSocket begins."""


class CdpState(NamedTuple):
    """The state of a connection when a snapshot was taken."""

    received: bytes = b""
    """Received bytes of a message that is not complete."""
    number: int = 0
    """Number of the last command."""
    begun: bool = False
    """Flag that the WebSocket is open."""
    skipping: int = 0
    """Bytes that are to come of a message that is dropped."""


class WebSocketConnection(CdpConnection):
    """The host's end of the connection."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], state: CdpState, expected: Collection[str] = ()) -> None:
        """Create a connection that gives bytes to the browser by `send`. `expected`: as in CdpConnection."""
        super().__init__(state.number + _NUMBER_STEP * state.begun, expected)
        self._send, self._received, self._begun = send, bytearray(state.received), state.begun
        self._skipping = state.skipping
        """Bytes that are still to come of a message that is dropped."""
        self._opened = asyncio.Event()
        self._sending = asyncio.Lock()

    @property
    def state(self) -> CdpState:
        """The state for a snapshot, while the sandbox is paused."""
        return CdpState(bytes(self._received), self._number, self._begun, self._skipping)

    async def begin(self, path: str) -> None:
        """Open the WebSocket, unless it is open already. Raises EnvironmentFailure if the browser refuses it."""
        if self._begun:
            return
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        await self._send(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        await self._opened.wait()
        self._check()

    def feed(self, data: bytes) -> None:
        """Handle bytes from the browser. No bytes mean that it is gone."""
        self._received += data
        if not data:
            self.fail("the browser is gone")
        if not self._begun and b"\r\n\r\n" in self._received:
            head, _, rest = bytes(self._received).partition(b"\r\n\r\n")
            self._received, self._begun = bytearray(rest), b" 101 " in head.split(b"\r\n")[0] + b" "
            if not self._begun:
                self.fail("the browser refuses a WebSocket")
            self._opened.set()
        elif not self._begun and len(self._received) > _HEAD:
            raise ValueError("the head of a WebSocket that does not end")
        while self._begun and not self._skipped() and (found := _next_message(self._received)):
            kind, text, size = found
            del self._received[:size]
            if kind == 1:
                self._receive(decoded(text))
            elif kind == 8:
                self.fail("the browser is gone")

    def _skipped(self) -> bool:
        """Drop the received part of a message that is too large. Return whether more is to come. The command that it answers fails."""
        if not self._skipping and (frame := _frame(self._received)) and frame[1] > MOST_BYTES:
            start, size = frame
            if size > MESSAGE:
                raise ValueError(f"a message of {size:,} bytes, of which at most {MESSAGE:,} are read")
            if len(self._received) < start + KEPT:
                return True
            if failed := refused(bytes(self._received[start : start + KEPT]), b"", size):
                self._receive(decoded(failed))
            self._skipping = start + size
        done = min(self._skipping, len(self._received))
        del self._received[:done]
        self._skipping -= done
        return self._skipping > 0

    def fail(self, why: str) -> None:
        super().fail(why)
        self._opened.set()

    async def _write(self, text: bytes) -> None:
        """Send one frame with text, masked with zeros."""
        size = len(text)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 254, size) if size < 65536 else b""
        async with self._sending:
            await self._send(bytes((128 | 1,)) + (length or struct.pack("!BQ", 255, size)) + bytes(4) + text)


def _frame(received: bytearray) -> tuple[int, int] | None:
    """Return the offset at which the text of the first message begins, and its size in bytes; None until its head is complete."""
    if len(received) < 2:
        return None
    size, start = received[1] & 127, 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(received) < 2 + width:
            return None
        size, start = int.from_bytes(received[2 : 2 + width], "big"), 2 + width
    return start, size


def _next_message(received: bytearray) -> tuple[int, bytes, int] | None:
    """Return opcode, text and size in bytes of the first message; None until it is complete. CDP sends each message in one frame."""
    frame = _frame(received)
    if frame is None or len(received) < sum(frame):
        return None
    start, size = frame
    return received[0] & 15, bytes(received[start : start + size]), start + size
