"""Our own connection to a browser: commands, their answers, and sessions with pages.

It goes by without Playwright's driver, whose relay of each message takes longer than the browser does for a short command. How the messages
are carried is left to subclasses: a WebSocket into a sandbox, or the pipe of a browser that this process started.
"""

from __future__ import annotations

import asyncio
import json
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import msgspec

from exact.environments.browser.page.cdp import MOST_BYTES, NO_SESSION, TOO_LARGE, CdpSession
from exact.environments.browser.page.garbage import no_collection
from exact.errors import EnvironmentFailure

KEPT = 4096
"""Bytes of both ends of a message that is too large, which tell what it answers."""
_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_PAUSED = re.compile(
    rb'\{"method":\s?"Fetch\.requestPaused",\s?"params":\s?\{"requestId":\s?"([\w.-]+)",\s?"request":\s?\{'
    rb'(?:"url":\s?' + _TEXT + rb',\s?"method":\s?' + _TEXT + rb")?"
)
_FRAME = re.compile(rb'"frameId":\s?"(\w+)",\s?"resourceType":\s?"(\w+)"')
_ANSWER, _SESSION = re.compile(rb'\{"id":\s?(\d+),'), re.compile(rb'"sessionId":"(\w+)"\}$')


def refused(head: bytes, tail: bytes, size: int) -> bytes:
    """Return what takes the place of a message that is too large, by its ends and its size in bytes.

    For an answer that is an error, for a paused request the same request without body and headers, marked `tooLarge`; else nothing.
    """
    answer, session = _ANSWER.match(head), _SESSION.search(tail)
    if not answer:
        return _without_body(head, tail, session)
    text = f"{TOO_LARGE}: {size:,} bytes, of which at most {MOST_BYTES:,} are read"
    of = {"sessionId": session[1].decode()} if session else {}
    return json.dumps({"id": int(answer[1]), "error": {"code": -32000, "message": text}, **of}, separators=(",", ":")).encode()


def _without_body(head: bytes, tail: bytes, session: re.Match[bytes] | None) -> bytes:
    found, ends = _PAUSED.match(head), _FRAME.search(tail)
    if not found:
        return b""
    url, method = (json.loads(b'"' + (text or b"") + b'"') for text in found.group(2, 3))
    request = {"url": url, "method": method, "headers": {}}
    frame, kind = ends.groups() if ends else (b"", b"Other")
    event = {"requestId": found[1].decode(), "request": request, "frameId": frame.decode(), "resourceType": kind.decode(), "tooLarge": True}
    of = {"sessionId": session[1].decode()} if session else {}
    return json.dumps({"method": "Fetch.requestPaused", "params": event, **of}, separators=(",", ":")).encode()


def decoded(message: bytes) -> dict[str, Any]:
    """Return a message of a browser. Raises ValueError or RecursionError."""
    try:
        with no_collection():
            found = msgspec.json.decode(message)
    except msgspec.DecodeError:  # strings of scripts may hold halves of surrogate pairs
        found = json.loads(message)
    return dict(found)


class CdpConnection(ABC):
    """A connection to a browser. `on` and `send` are as in Playwright's CDPSession."""

    def __init__(self, number: int = 0, expected: Collection[str] = ()) -> None:
        """Create a connection.

        `number`: number of the last command. `expected`: names of events that are kept until they have a handler.
        """
        self._number, self._root = number, ""
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)
        self._expected, self._unhandled = expected, list[dict[str, Any]]()
        self._answers: dict[int, tuple[str, asyncio.Future[dict[str, Any]]]] = {}
        """By command: its session, empty for the browser's own, and the message that will answer it."""
        self._sessions: dict[str, CdpSession] = {}
        self._lost = ""

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of a name, including expected ones that came before."""
        self._handlers[event].append(handler)
        early, self._unhandled = self._unhandled, []
        for message in early:
            self._receive(message)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises EnvironmentFailure where it is refused, or the browser is gone."""
        answer = await self._ask(self._root, method, params or {})
        if "error" in answer:
            raise EnvironmentFailure(f"{method}: {answer['error'].get('message', 'refused')}")
        return dict(answer.get("result", {}))

    async def attach(self, target: str) -> CdpSession:
        """Attach to a page by its CDP id. Raises Playwright's Error, as sessions do, where the page is gone."""
        own = CdpSession(partial(self._ask, self._root))
        id = str((await own.send("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"])
        session = self._sessions[id] = CdpSession(partial(self._ask, id))
        return session

    @property
    def is_lost(self) -> bool:
        """Return whether the browser is gone."""
        return bool(self._lost)

    def fail(self, why: str) -> None:
        """Fail all pending and later commands: the connection is lost. `why` is the reason."""
        self._lost = self._lost or why
        for _, future in self._answers.values():
            if not future.done():
                future.set_exception(EnvironmentFailure(self._lost))

    @abstractmethod
    async def _write(self, text: bytes) -> None:
        """Send one message to the browser."""

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
            await self._write(json.dumps(asked).encode())
            answer: dict[str, Any] = await future
        finally:
            self._answers.pop(number, None)
        return answer

    def _receive(self, message: dict[str, Any]) -> None:
        session = message.get("sessionId", "")
        if "method" in message and session != self._root:
            if found := self._sessions.get(session):
                found.dispatch(message["method"], message.get("params", {}))
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
