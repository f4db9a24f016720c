"""Our own CDP connection to a sandbox's browser, over WebSocket. A restored fork resumes it where the snapshot was taken.

Playwright's connections end with a fork, and with them request interception by `Fetch`. This connection stays open inside the sandbox, so
no request of a restored browser is sent before the request policy has allowed it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import struct
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, NamedTuple

from exact.environments.browser.page.cdp import NO_SESSION, CdpSession
from exact.errors import EnvironmentFailure

_NUMBER_STEP = 1 << 20
"""Added to the numbers of commands at a restore, so that answers to earlier commands are ignored."""


MESSAGE = 128 << 20
"""Most bytes of one message of a browser. A document of 20 MB comes as 27 MB."""
_HEAD = 65536
"""Most bytes of the head with which a WebSocket begins."""


class CdpState(NamedTuple):
    """The state of a connection when a snapshot was taken."""

    received: bytes = b""
    """Received bytes of a message that is not complete."""
    number: int = 0
    """Number of the last command."""
    begun: bool = False
    """Flag that the WebSocket is open."""


class CdpConnection:
    """The host's end of the connection. `on` and `send` are as in Playwright's CDPSession."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], state: CdpState, expected: Collection[str] = ()) -> None:
        """Create a connection that gives bytes to the browser by `send`.

        `expected`: names of events that are kept until they have a handler.
        """
        self._send, self._received = send, bytearray(state.received)
        self._number, self._begun = state.number + _NUMBER_STEP * state.begun, state.begun
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)
        self._expected, self._unhandled = expected, list[dict[str, Any]]()
        self._answers: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        """By command: its session, empty for the browser's own, and the message that will answer it."""
        self._sessions: dict[str, CdpSession] = {}
        self._opened = asyncio.Event()
        self._sending = asyncio.Lock()
        self._lost = ""

    @property
    def state(self) -> CdpState:
        """The state for a snapshot, while the sandbox is paused."""
        return CdpState(bytes(self._received), self._number, self._begun)

    async def begin(self, path: str) -> None:
        """Open the WebSocket, unless it is open already. Raises EnvironmentFailure where the browser refuses it."""
        if self._begun:
            return
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        await self._send(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        await self._opened.wait()
        self._check()

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of a name, including expected ones that came before."""
        self._handlers[event].append(handler)
        early, self._unhandled = self._unhandled, []
        for message in early:
            self._receive(message)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises EnvironmentFailure where it is refused, or the browser is gone."""
        answer = await self._ask("", method, params or {})
        if "error" in answer:
            raise EnvironmentFailure(f"{method}: {answer['error'].get('message', 'refused')}")
        return dict(answer.get("result", {}))

    async def attach(self, target: str) -> CdpSession:
        """Attach to a page by its CDP id. Raises Playwright's Error, as sessions do, where the page is gone."""
        own = CdpSession(partial(self._ask, ""))
        id = str((await own.send("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"])
        session = self._sessions[id] = CdpSession(partial(self._ask, id))
        return session

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
        while self._begun and (found := _next_message(self._received)):
            kind, text, size = found
            del self._received[:size]
            if kind == 1:
                self._receive(json.loads(text))
            elif kind == 8:
                self.fail("the browser is gone")

    def fail(self, why: str) -> None:
        """Fail all pending and later commands: the connection is lost. `why` is the reason."""
        self._lost = self._lost or why
        self._opened.set()
        for _, future in self._answers.values():
            if not future.done():
                future.set_exception(EnvironmentFailure(self._lost))

    def _check(self) -> None:
        if self._lost:
            raise EnvironmentFailure(self._lost)

    async def _ask(self, session: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a command and return the message that answers it. Raises EnvironmentFailure where the browser is gone."""
        self._check()
        self._number += 1
        number, future = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = session, future
        asked = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        try:
            await self._send_frame(1, json.dumps(asked).encode())
            answer: dict[str, Any] = await future
        finally:
            self._answers.pop(number, None)
        return answer

    def _receive(self, message: dict[str, Any]) -> None:
        if "method" in message and "sessionId" in message:
            if session := self._sessions.get(message["sessionId"]):
                session.dispatch(message["method"], message.get("params", {}))
        elif "method" in message:
            if message["method"] == "Target.detachedFromTarget":
                self._session_ended(message["params"]["sessionId"])
            handlers = self._handlers.get(message["method"], [])
            if not handlers and message["method"] in self._expected:
                self._unhandled.append(message)
            for handler in handlers:
                handler(message.get("params", {}))
        elif (asked := self._answers.get(message.get("id", 0))) and not asked[1].done():
            asked[1].set_result(message)

    def _session_ended(self, id: str) -> None:
        self._sessions.pop(id, None)
        for asking, future in self._answers.values():
            if asking == id and not future.done():
                future.set_result({"error": {"code": NO_SESSION}})

    async def _send_frame(self, kind: int, text: bytes) -> None:
        """Send one WebSocket frame, masked with zeros."""
        size = len(text)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 254, size) if size < 65536 else b""
        async with self._sending:
            await self._send(bytes((128 | kind,)) + (length or struct.pack("!BQ", 255, size)) + bytes(4) + text)


def _next_message(received: bytearray) -> tuple[int, bytes, int] | None:
    """Return opcode, text and size in bytes of the first message; None until it is complete. CDP sends each message in one frame."""
    if len(received) < 2:
        return None
    size, start = received[1] & 127, 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(received) < 2 + width:
            return None
        size, start = int.from_bytes(received[2 : 2 + width], "big"), 2 + width
    if size > MESSAGE:
        raise ValueError(f"a message of {size:,} bytes, of which at most {MESSAGE:,} are read")
    if len(received) < start + size:
        return None
    return received[0] & 15, bytes(received[start : start + size]), start + size
