"""CDP sessions with pages, and commands that are too slow through Playwright's driver.

A command over our own connection takes half the time.

Our own connection to a browser: commands, their answers, and sessions with pages.

It bypasses Playwright's driver, whose relay of each message takes longer than the browser needs for a short command. Subclasses carry the
messages: a WebSocket into a sandbox, or the pipe of a browser that this process started.

JavaScript for pages: `.js` files beside the modules that use them, each one function.

Garbage collection while many lasting objects are made.
"""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import json
import re
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

import msgspec

from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession


Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a command and returns the message that answers it. Raises EnvironmentFailure if the browser is gone."""

NO_SESSION = -32001
"""CDP's error code for an unknown session."""
MOST_BYTES = 40 << 20
"""Maximum bytes of one message of a browser. The body of a document of 20 MB has 27 MB."""
TOO_LARGE = "the answer is too large"
"""Beginning of the error in the place of an answer with more bytes than that."""


class PageTooLarge(Exception):
    """A page whose state has more than is read as a whole."""


FLOOD = "Exact.flood"
"""Event of our own: the page floods the connection. Its `why` says by what."""
CLOSED = "the page, its context or the browser has been closed"


class CdpSession:
    """A session with a page over our own connection, made by `CdpConnection.attach`.

    `on`, `send` and their errors are as in Playwright's CDPSession.
    """

    def __init__(self, ask: Ask, target: str = "") -> None:
        """Make a session that sends by `ask`. `target`: CDP id of the page."""
        self._ask, self.target = ask, target
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of a name from now on."""
        self._handlers[event].append(handler)

    def hears(self, event: str) -> bool:
        """Return whether an event has a handler."""
        return event in self._handlers

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises Playwright's Error if it is refused, or the page is gone."""
        from playwright.async_api import Error

        try:
            answer = await self._ask(method, params or {})
        except EnvironmentFailure as lost:
            raise Error(f"{method}: {CLOSED}: {lost}") from lost
        if error := answer.get("error"):
            raise Error(f"{method}: {CLOSED if error.get('code') == NO_SESSION else error.get('message', 'refused')}")
        return dict(answer.get("result", {}))

    def dispatch(self, event: str, params: dict[str, Any]) -> None:
        """Call the handlers of an event of the page."""
        for handler in self._handlers.get(event, ()):
            handler(params)


Cdp: TypeAlias = "CDPSession | CdpSession"
"""A session with a page, ours or Playwright's."""


Send = Callable[[str, dict[str, Any]], Awaitable[Any]]


def raw_send(cdp: Cdp) -> Send:
    """Return a faster `send` of a session, without Playwright's search of every answer for handles to its own objects.

    Answers of CDP are plain JSON. For a page with a thousand elements the search takes as long as the rest of an observation. If this
    version of Playwright is built differently, the session's own `send` is returned.
    """
    inner = getattr(getattr(cdp, "_impl_obj", None), "send", None)
    if inner is None:
        return cdp.send
    further = inspect.signature(inner).parameters.keys() - {"method", "params"}
    if not further <= {"timeout"}:
        return cdp.send
    limit = dict.fromkeys(further, 0)  # 0: no timeout, the default
    return lambda method, params: inner(method, params, **limit)


Button = Literal["left", "right"]
_BUTTON_BITS = {"left": 1, "right": 2}
"""Bits of the buttons in CDP's `buttons`."""
_MODIFIER_BITS = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}


async def move_mouse(cdp: Cdp, x: float, y: float) -> None:
    """Move the pointer to a point in CSS pixels of the viewport. Return once the page has handled the event.

    Chromium holds a move back until the next frame, unless another event of the mouse follows. So a release of no button follows, of which
    the page hears nothing. Playwright's mouse does not know this position: move it before dragging with it.
    """
    at = {"x": x, "y": y, "button": "none", "buttons": 0}
    await asyncio.gather(*(cdp.send("Input.dispatchMouseEvent", {"type": each, **at}) for each in ("mouseMoved", "mouseReleased")))


async def turn_wheel(cdp: Cdp, x: float, y: float, right: float, down: float) -> None:
    """Turn the mouse wheel at a point, by CSS pixels to the right and down. Return once the page has handled the event."""
    at = {"type": "mouseWheel", "x": x, "y": y, "button": "none"}
    await cdp.send("Input.dispatchMouseEvent", {**at, "deltaX": right, "deltaY": down})


async def click_mouse(cdp: Cdp, x: float, y: float, *, button: Button = "left", count: int = 1, held: Collection[str] = ()) -> None:
    """Press and release a button at the point that the pointer was moved to, `count` times in a row.

    `held`: names of the modifier keys that are held down.
    """
    at = {"x": x, "y": y, "button": button, "modifiers": sum(_MODIFIER_BITS[key] for key in held)}
    events = [
        {"type": kind, **at, "clickCount": number, "buttons": buttons, "force": force}
        for number in range(1, count + 1)
        for kind, buttons, force in (("mousePressed", _BUTTON_BITS[button], 0.5), ("mouseReleased", 0, 0))
    ]
    await asyncio.gather(*(cdp.send("Input.dispatchMouseEvent", event) for event in events))  # sent in this order at once


KEPT = 4096
"""Bytes of both ends of a message that is too large, which identify its request."""
_TEXT = rb'"((?:[^"\\]|\\.)*)"'
_PAUSED = re.compile(
    rb'\{"method":\s?"Fetch\.requestPaused",\s?"params":\s?\{"requestId":\s?"([\w.-]+)",\s?"request":\s?\{'
    rb'(?:"url":\s?' + _TEXT + rb',\s?"method":\s?' + _TEXT + rb")?"
)
_FRAME = re.compile(rb'"frameId":\s?"(\w+)",\s?"resourceType":\s?"(\w+)"')
_ANSWER, _SESSION = re.compile(rb'\{"id":\s?(\d+),'), re.compile(rb'"sessionId":"(\w+)"\}$')


def refused(head: bytes, tail: bytes, size: int) -> bytes:
    """Return the replacement of a message that is too large, by its ends and its size in bytes.

    For an answer, an error; for a paused request, the same request without body and headers, marked `tooLarge`; else nothing.
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


class _Value(TypedDict, total=False):
    value: Any


class _Property(TypedDict):
    name: str
    value: _Value


class _AccessibleNode(TypedDict, total=False):
    backendDOMNodeId: int
    ignored: bool
    role: _Value
    name: _Value
    value: _Value
    description: _Value
    properties: list[_Property]


class _Nodes(TypedDict):
    nodes: list[_AccessibleNode]


class _Answer(TypedDict, total=False):
    id: int
    result: _Nodes
    error: Any
    sessionId: str


_WHOLE: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
_PART: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_Answer)
_DECODERS = {"Accessibility.getFullAXTree": _PART, "Accessibility.getPartialAXTree": _PART}
"""Decoders of answers by command. Two thirds of an accessibility tree say where the browser found a name."""


def decoded(message: bytes, decoder: msgspec.json.Decoder[Any] = _WHOLE) -> dict[str, Any]:
    """Return a message of a browser, or the part of it that a decoder takes. Raises ValueError or RecursionError."""
    try:
        with no_collection():
            found = decoder.decode(message)
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
        self._answers: dict[int, tuple[str, asyncio.Future[dict[str, Any]], str]] = {}
        """By command: its session, empty for the browser's own, the message that will answer it, and its method."""
        self._sessions: dict[str, CdpSession] = {}
        self._lost = ""

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of a name, including expected ones that came before."""
        self._handlers[event].append(handler)
        early, self._unhandled = self._unhandled, []
        for message in early:
            self._receive(message)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises EnvironmentFailure if it is refused, or the browser is gone."""
        answer = await self._ask(self._root, method, params or {})
        if "error" in answer:
            raise EnvironmentFailure(f"{method}: {answer['error'].get('message', 'refused')}")
        return dict(answer.get("result", {}))

    async def attach(self, target: str) -> CdpSession:
        """Attach to a page by its CDP id. Raises Playwright's Error, as sessions do, if the page is gone."""
        own = CdpSession(partial(self._ask, self._root))
        id = str((await own.send("Target.attachToTarget", {"targetId": target, "flatten": True}))["sessionId"])
        session = self._sessions[id] = CdpSession(partial(self._ask, id), target)
        return session

    def report_flood(self, target: str, why: str) -> None:
        """Tell the sessions with a page, by its CDP id, that it floods the connection. `why` says by what."""
        for each in [each for each in self._sessions.values() if each.target == target]:
            each.dispatch(FLOOD, {"why": why})

    @property
    def is_lost(self) -> bool:
        """Return whether the browser is gone."""
        return bool(self._lost)

    def fail(self, why: str) -> None:
        """Fail all pending and later commands: the connection is lost. `why` gives the reason."""
        self._lost = self._lost or why
        for _, future, _ in self._answers.values():
            if not future.done():
                future.set_exception(EnvironmentFailure(self._lost))
                future.exception()  # who waits for it gets it, and nobody has to

    @abstractmethod
    async def _write(self, text: bytes) -> None:
        """Send one message to the browser."""

    def _check(self) -> None:
        if self._lost:
            raise EnvironmentFailure(self._lost)

    async def _ask(self, session: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a command and return the message that answers it. Raises EnvironmentFailure if the browser is gone."""
        self._check()
        self._number += 1
        number, future = self._number, asyncio.get_running_loop().create_future()
        self._answers[number] = session, future, method
        asked = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        try:
            await self._write(json.dumps(asked).encode())
            answer: dict[str, Any] = await future
        finally:
            self._answers.pop(number, None)
        return answer

    def _take(self, message: bytes) -> None:
        """Handle a message of the browser; the connection is lost if it cannot be read."""
        answer = _ANSWER.match(message)
        asked = self._answers.get(int(answer[1])) if answer else None
        try:
            found = decoded(message, _DECODERS.get(asked[2], _WHOLE) if asked else _WHOLE)
        except (ValueError, RecursionError):
            self.fail("the browser sent a message that cannot be read")
        else:
            self._receive(found)

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
        for asking, future, _ in self._answers.values():
            if asking == id and not future.done():
                future.set_result({"error": {"code": NO_SESSION}})


_HEADER = re.compile(r"\A(?://.*\n)+")
_INCLUDE = re.compile(r"^ *//= (?:(\w+)/)?(\w+)\n", re.MULTILINE)
"""A line that is replaced by the file of that name, from the same folder unless one is named."""


@functools.cache
def script(name: str) -> str:
    """Return the source of a script, such as `act/aim` for `browser/act/aim.js`, with its includes and without the comment at its head.

    A script is one function declaration, so it fits `Tab.call`. Files are read once.
    """
    folder, file = name.split("/")
    source = files("exact.environments.browser").joinpath(folder, f"{file}.js").read_text("utf-8")
    return _INCLUDE.sub(lambda line: script(f"{line[1] or folder}/{line[2]}"), _HEADER.sub("", source))


def script_call(name: str, *arguments: object) -> str:
    """Return the expression that calls a script with JSON arguments."""
    return f"({script(name)})({', '.join(json.dumps(each) for each in arguments)})"


@contextmanager
def no_collection() -> Iterator[None]:
    """Make objects without looking for garbage among them. The block must not await.

    The tree of a page of 10,000 nodes is some 300,000 objects. Python would search all of its objects several times while they are made.
    That took 45 percent of an observation. After the block all objects count as old, or the young ones would be searched at once.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():  # else a program that uses this package keeps frozen objects, which would thaw
            gc.freeze()
            gc.unfreeze()
        gc.enable()
