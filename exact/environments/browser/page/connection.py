"""A conversation with a sandbox's browser that is part of the environment: a restored branch goes on with it where the snapshot cut it.

Playwright's connections end with a branch, and what was asked of `Fetch` over them ends too. This one stays open inside, so no request of
a restored browser goes anywhere before it is judged, whatever runs in the page. It speaks the DevTools protocol over WebSocket.
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

from exact.environments.browser.page.cdp import GONE, CdpSession
from exact.errors import EnvironmentFailure

_FIRST = 1 << 20
"""Added to the numbers of commands at a restore: answers to those of before mean nothing."""


class CdpState(NamedTuple):
    """Where a conversation was cut."""

    heard: bytes = b""
    """Of a message that was not whole."""
    number: int = 0
    begun: bool = False


class CdpConnection:
    """The host's end. `on` and `send` are as in Playwright's CDPSession."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], state: CdpState, expected: Collection[str] = ()) -> None:
        """`send` gives bytes to the browser. `expected`: events that somebody will ask about, and that wait until then."""
        self._send, self._heard = send, bytearray(state.heard)
        self._number, self._begun = state.number + _FIRST * state.begun, state.begun
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)
        self._expected, self._early = expected, list[dict[str, Any]]()
        self._answers: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        """Who waits for the answer to which command: the session, empty for the browser's own, and the message."""
        self._sessions: dict[str, CdpSession] = {}
        self._greeted = asyncio.Event()
        self._sending = asyncio.Lock()
        self._lost = ""

    @property
    def state(self) -> CdpState:
        """Of an environment that is held."""
        return CdpState(bytes(self._heard), self._number, self._begun)

    async def begin(self, path: str) -> None:
        """Open the conversation, unless it is open already. Raises EnvironmentFailure."""
        if self._begun:
            return
        key = base64.b64encode(os.urandom(16)).decode()
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        await self._send(f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        await self._greeted.wait()
        self._check()

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of that name, those that came before anybody asked too."""
        self._handlers[event].append(handler)
        early, self._early = self._early, []
        for message in early:
            self._understand(message)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a command. Raises EnvironmentFailure where it is refused, or the browser is gone."""
        answer = await self._ask("", method, params or {})
        if "error" in answer:
            raise EnvironmentFailure(f"{method}: {answer['error'].get('message', 'refused')}")
        return dict(answer.get("result", {}))

    async def attach(self, target: str) -> CdpSession:
        """A session with a page, by its CDP id. Raises Playwright's Error, as sessions do: the page may have gone meanwhile."""
        own = CdpSession(partial(self._ask, ""))
        id = str((await own.send("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"])
        session = self._sessions[id] = CdpSession(partial(self._ask, id))
        return session

    def hear(self, data: bytes) -> None:
        """Bytes from the browser; none: it is gone."""
        self._heard += data
        if not data:
            self.fail("the browser is gone")
        if not self._begun and b"\r\n\r\n" in self._heard:
            head, _, rest = bytes(self._heard).partition(b"\r\n\r\n")
            self._heard, self._begun = bytearray(rest), b" 101 " in head.split(b"\r\n")[0] + b" "
            if not self._begun:
                self.fail("the browser refuses a WebSocket")
            self._greeted.set()
        while self._begun and (found := _message(self._heard)):
            kind, text, size = found
            del self._heard[:size]
            if kind == 1:
                self._understand(json.loads(text))
            elif kind == 8:
                self.fail("the browser is gone")

    def fail(self, why: str) -> None:
        """Nothing more will be heard."""
        self._lost = self._lost or why
        self._greeted.set()
        for _, future in self._answers.values():
            if not future.done():
                future.set_exception(EnvironmentFailure(self._lost))

    def _check(self) -> None:
        if self._lost:
            raise EnvironmentFailure(self._lost)

    async def _ask(self, session: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The message that answers a command. Raises EnvironmentFailure where the browser is gone."""
        self._check()
        self._number += 1
        number, future = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = session, future
        asked = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        try:
            await self._say(1, json.dumps(asked).encode())
            answer: dict[str, Any] = await future
        finally:
            self._answers.pop(number, None)
        return answer

    def _understand(self, message: dict[str, Any]) -> None:
        if "method" in message and "sessionId" in message:
            if session := self._sessions.get(message["sessionId"]):
                session.hear(message["method"], message.get("params", {}))
        elif "method" in message:
            if message["method"] == "Target.detachedFromTarget":
                self._detach(message["params"]["sessionId"])
            handlers = self._handlers.get(message["method"], [])
            if not handlers and message["method"] in self._expected:
                self._early.append(message)
            for handler in handlers:
                handler(message.get("params", {}))
        elif (asked := self._answers.get(message.get("id", 0))) and not asked[1].done():
            asked[1].set_result(message)

    def _detach(self, id: str) -> None:
        self._sessions.pop(id, None)
        for asking, future in self._answers.values():
            if asking == id and not future.done():
                future.set_result({"error": {"code": GONE}})

    async def _say(self, kind: int, text: bytes) -> None:
        """One message; the mask that a client owes is all zeros."""
        size = len(text)
        length = struct.pack("!B", 128 | size) if size < 126 else struct.pack("!BH", 254, size) if size < 65536 else b""
        async with self._sending:
            await self._send(bytes((128 | kind,)) + (length or struct.pack("!BQ", 255, size)) + bytes(4) + text)


def _message(heard: bytearray) -> tuple[int, bytes, int] | None:
    """The first message: its kind, its text, and how many bytes it took; None until it is whole. DevTools sends each in one frame."""
    if len(heard) < 2:
        return None
    size, start = heard[1] & 127, 2
    if size >= 126:
        width = 2 if size == 126 else 8
        if len(heard) < 2 + width:
            return None
        size, start = int.from_bytes(heard[2 : 2 + width], "big"), 2 + width
    if len(heard) < start + size:
        return None
    return heard[0] & 15, bytes(heard[start : start + size]), start + size
