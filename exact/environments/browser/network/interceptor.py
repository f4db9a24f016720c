"""Judges every request of a browser before it is sent.

One CDP `Fetch` on the browser's own session sees all of them from the first on: every context, frame, popup, worker and redirect hop
(Playwright's `route` does not see redirects, and a session for each target would come too late for popups). A request of a context that
nobody answers for is refused.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

import msgspec

from exact.environments.base import SideEffect
from exact.environments.browser.network.pdf import as_page
from exact.environments.browser.network.recording import Tape, encoded
from exact.environments.browser.network.scrub import nothing
from exact.errors import EnvironmentFailure
from exact.safety import origin, refusal

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.line import Line

Event = dict[str, Any]
EVENTS = ("Target.targetCreated", "Target.targetDestroyed", "Fetch.requestPaused")
"""What it hears of."""
_MAKE_WORLDS = ("Document", "Other")
"""Kinds of requests whose responses become documents or workers, in which scripts run under the response's policy. Chromium takes a
document's policy from what the server sent, whatever `continueResponse` says, so documents are handed over as a whole."""
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that hold for the body as it was sent, not as it is handed on."""
_ENDLESS = ("EventSource", "Media", "Ping", "Preflight")
"""Kinds of answers that are not recorded."""
_HTML = ({"name": "Content-Type", "value": "text/html; charset=utf-8"},)
_READS = ("GET", "HEAD", "OPTIONS")
_PATIENCE = 1.0
"""Seconds a request of a frame that is not known yet is held back before it is refused."""
_PAUSE = 0.02
"""Seconds between two looks for its frame."""


class Frames(Protocol):
    """Those of one browser context."""

    def has(self, frame: str) -> bool:
        """Whether a frame, by its id, is known to be one of them: as far as events told, and answers."""
        ...

    async def ask(self) -> None:
        """Know all that there are now. A page that stands still answers late. Raises Playwright's Error where one has gone."""
        ...


class Ward:
    """What one browser context may do, and what it did since it was last asked."""

    def __init__(self, allowed: Iterable[str], *, writes: bool, frames: Frames, only: Iterable[str] | None = None) -> None:
        """`allowed`: origins. `writes`: whether methods that change the outside are sent, `only` to these origins where there are some
        that others are not undone with. `frames`: the context's."""
        self.allowed, self.frames = tuple(allowed), frames
        self.writable = () if not writes else self.allowed if only is None else tuple(each for each in self.allowed if each in set(only))
        """Origins to which writes are sent."""
        self.own: tuple[str, ...] = ()
        """The task's own origins: `headers` are sent to them."""
        self.headers: dict[str, str] = {}
        self.unlocked = False
        """Whether writes are sent wherever requests are: while logging in."""
        self.blanks: set[str] = set()
        """Addresses that are answered from here, with an empty page."""
        self.unauthorized = ""
        """A page's address that was answered with status 401."""
        self.most = 1 << 30
        """Bytes of a document that is read here."""
        self._effects: list[SideEffect] = []
        self._sent: dict[str, SideEffect] = {}
        """Writes that were not answered yet, by the ids of their requests."""
        self.veil: Callable[[str], str] = nothing
        """Hides what must not be written down."""
        self._popups: set[str] = set()
        self._settled = asyncio.Event()
        self._settled.set()

    def expect(self, target: str) -> None:
        """A popup was opened: a page nobody looks at yet."""
        self._popups.add(target)
        self._settled.clear()

    def forget(self, target: str) -> bool:
        """The popup is looked at or gone. False if it was not expected."""
        known = target in self._popups
        self._popups.discard(target)
        if not self._popups:
            self._settled.set()
        return known

    async def no_popups(self) -> None:
        """Return when every popup is looked at or gone."""
        await self._settled.wait()

    def record(self, effect: SideEffect) -> None:
        """Note something the context did."""
        self._effects.append(effect)

    def send(self, request: str, effect: SideEffect) -> None:
        """Note a write that is on its way from now on, whether or not it will be answered."""
        self._sent[request] = effect

    def answer(self, request: str, status: int) -> None:
        """A write was answered. Nothing where it was told of before that, or was sent under other rules."""
        if sent := self._sent.pop(request, None):
            self.record(msgspec.structs.replace(sent, status=status))

    def take(self) -> tuple[SideEffect, ...]:
        """What happened since the last call. Each write is told once, without a status where it is not answered yet."""
        effects, self._effects, self._sent = (*self._effects, *self._sent.values()), [], {}
        return effects

    def refusal(self, method: str, url: str) -> str:
        """Why a request is not sent; empty if it is."""
        if not self.unlocked and method not in _READS and origin(url) in self.allowed and origin(url) not in self.writable:
            return "a write while exploring"
        return refusal(url, self.allowed)

    def policy(self) -> str:
        """A content security policy that holds for what `Fetch` does not see: WebSockets and WebTransport."""
        sockets = [o.replace("http", "ws", 1) for o in self.writable if o.startswith("http")]
        return " ".join(("connect-src http: https: data: blob: filesystem:", *sockets))


class Guard:
    """The one judge of a browser's requests; each context's Ward gives the rules."""

    def __init__(self, cdp: CDPSession | Line, tape: Tape | None = None) -> None:
        """`tape`: where answers are recorded, or where they come from."""
        self._cdp, self._tape = cdp, tape
        self._wards: dict[str, Ward] = {}
        self._contexts: dict[str, str] = {}
        self._tasks: dict[asyncio.Task[None], Event] = {}
        self._questions: dict[str, asyncio.Task[None]] = {}
        """For the frames of contexts: one for each at a time."""
        self._asked: tuple[Event, ...] | None = None
        self._going = asyncio.Event()
        self._going.set()

    async def start(self) -> None:
        """Judge from now on."""
        self._cdp.on("Target.targetCreated", self._target)
        self._cdp.on("Target.targetDestroyed", self._gone)
        self._cdp.on("Fetch.requestPaused", self._paused)
        again = [False, True] if self._asked is not None else [True]  # of a conversation that goes on: tell about all again
        await asyncio.gather(
            *(self._cdp.send("Target.setDiscoverTargets", {"discover": each}) for each in again), self._cdp.send("Fetch.enable", {})
        )

    @property
    def busy(self) -> bool:
        """Whether a request is held back at the moment."""
        return bool(self._tasks)

    @property
    def unanswered(self) -> tuple[Event, ...]:
        """Requests that are being judged."""
        return tuple(self._tasks.values())

    def go_on(self, unanswered: tuple[Event, ...]) -> None:
        """Before `start`, over a conversation that goes on: judge what was not answered then."""
        self._asked = unanswered

    def hold(self) -> None:
        """Answer no request until `go`."""
        self._going.clear()

    def go(self) -> None:
        """Answer requests, those that came meanwhile too."""
        self._going.set()
        asked, self._asked = self._asked or (), None
        for event in asked:
            self._paused(event)

    def end(self) -> None:
        """Judge nothing any more: the browser goes, with all that asks."""
        for task in (*self._tasks, *self._questions.values()):
            task.cancel()

    def admit(self, context: str, ward: Ward) -> None:
        """Answer for a browser context, by its CDP id."""
        self._wards[context] = ward

    def dismiss(self, context: str) -> None:
        """Refuse all further requests of a context."""
        self._wards.pop(context, None)
        self._contexts = {frame: owner for frame, owner in self._contexts.items() if owner != context}

    def _target(self, event: Event) -> None:
        info = event["targetInfo"]
        target, context = info["targetId"], info.get("browserContextId", "")
        new, self._contexts[target] = target not in self._contexts, context
        if new and info["type"] == "page" and context in self._wards:
            self._wards[context].expect(target)

    def _gone(self, event: Event) -> None:
        context = self._contexts.pop(event["targetId"], "")
        if context in self._wards:
            self._wards[context].forget(event["targetId"])

    def _paused(self, event: Event) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._tasks[task] = event
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, event: Event) -> None:
        from playwright.async_api import Error

        await self._going.wait()
        try:
            if "responseStatusCode" in event or "responseErrorReason" in event:
                await self._response(event)
            else:
                await self._request(event)
        except (Error, EnvironmentFailure):
            pass  # the request, its page or the browser is gone: there is nobody to answer to

    async def _request(self, event: Event) -> None:
        request, kind = event["request"], event["resourceType"]
        ward = await self._ward(event["frameId"])
        reason = ward.refusal(request["method"], request["url"]) if ward else "a request that belongs to no page"
        if reason:
            if ward:
                ward.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail=reason))
            await self._refuse(event, ward)
            return
        if ward and request["url"] in ward.blanks:
            await self._cdp.send("Fetch.fulfillRequest", {"requestId": event["requestId"], "responseCode": 200, "responseHeaders": _HTML})
            return
        if ward and self._tape and self._tape.mode == "replay":
            await self._replay(event, ward)
            return
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if request["method"] not in _READS or kind in _MAKE_WORLDS or self._records(event):
            answer["interceptResponse"] = True
        if ward and ward.headers and origin(request["url"]) in ward.own:
            named = {name.lower() for name in ward.headers}
            kept = [(name, value) for name, value in request["headers"].items() if name.lower() not in named]
            answer["headers"] = [{"name": name, "value": value} for name, value in (*kept, *ward.headers.items())]
        if ward and request["method"] not in _READS:
            ward.send(event["requestId"], SideEffect(kind="request", method=request["method"], url=request["url"]))
        await self._cdp.send("Fetch.continueRequest", answer)

    def _records(self, event: Event) -> bool:
        """Whether an answer is written down: it comes over the network, and has an end."""
        return self._tape is not None and event["request"]["url"].startswith("http") and event["resourceType"] not in _ENDLESS

    async def _replay(self, event: Event, ward: Ward) -> None:
        """Answer from the tape, where this was asked before."""
        assert self._tape is not None
        request = event["request"]
        if not request["url"].startswith("http"):
            await self._cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]})
            return
        found = self._tape.answer(request, ward.veil)
        if found is None:
            ward.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail="not in the recorded traffic"))
            await self._refuse(event, ward)
            return
        if request["method"] not in _READS:
            ward.record(SideEffect(kind="request", method=request["method"], url=request["url"], status=found.status))
        headers = [{"name": name, "value": value} for name, value in found.headers if name.lower() not in _OF_THE_WIRE]
        if event["resourceType"] in _MAKE_WORLDS:
            headers.append({"name": "Content-Security-Policy", "value": ward.policy()})
        answer = {"requestId": event["requestId"], "responseCode": found.status, "responseHeaders": headers, "body": encoded(found.body)}
        await self._cdp.send("Fetch.fulfillRequest", answer)

    async def _record(self, event: Event, ward: Ward) -> None:
        """Write an answer down. The body of a redirect cannot be had, and a download's goes to nobody."""
        assert self._tape is not None
        status, body = event["responseStatusCode"], b""
        if not 300 <= status < 400:
            got = await self._cdp.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
            body = base64.b64decode(got["body"]) if got["base64Encoded"] else got["body"].encode()
        headers = [(each["name"], each["value"]) for each in event.get("responseHeaders", ())]
        kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_WIRE]
        self._tape.record(event["request"], status, kept, body, ward.veil)

    async def _refuse(self, event: Event, ward: Ward | None) -> None:
        """Aborting a navigation leaves the page as it was; a popup that never became a page is closed."""
        await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "Aborted"})
        if ward and event["resourceType"] == "Document" and ward.forget(event["frameId"]):
            await self._cdp.send("Target.closeTarget", {"targetId": event["frameId"]})

    async def _response(self, event: Event) -> None:
        request, status = event["request"], event.get("responseStatusCode", 0)
        ward = await self._ward(event["frameId"])
        if ward:
            ward.answer(event["requestId"], status)
        if ward and status and self._records(event):
            await self._record(event, ward)
        if ward and status == 401 and event["resourceType"] == "Document":
            ward.unauthorized = request["url"]
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if ward is None or event["resourceType"] not in _MAKE_WORLDS or not 200 <= status < 600 or 300 <= status < 400:
            await self._cdp.send("Fetch.continueResponse", answer)
            return
        given = event.get("responseHeaders", ())
        policy = {"name": "Content-Security-Policy", "value": ward.policy()}
        if event["resourceType"] == "Document" and status == 200 and _is_pdf(given, ward.most):
            await self._show_pdf(event)
            return
        answer |= {"responseCode": status, "responseHeaders": [*given, policy]}
        if event["resourceType"] == "Other" or not _is_page(given):
            await self._cdp.send("Fetch.continueResponse", answer)
            return
        body = await self._cdp.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
        answer["responseHeaders"] = [*(each for each in given if each["name"].lower() not in _OF_THE_WIRE), policy]
        answer["body"] = body["body"] if body["base64Encoded"] else base64.b64encode(body["body"].encode()).decode()
        await self._cdp.send("Fetch.fulfillRequest", answer)

    async def _show_pdf(self, event: Event) -> None:
        """Hand over the text of a PDF instead: a page without scripts."""
        got = await self._cdp.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
        body = base64.b64decode(got["body"]) if got["base64Encoded"] else got["body"].encode("latin-1", "replace")
        page = await asyncio.to_thread(as_page, body, urlsplit(event["request"]["url"]).path)
        answer = {"requestId": event["requestId"], "responseCode": 200, "body": encoded(page)}
        still = {"name": "Content-Security-Policy", "value": "default-src 'none'"}
        await self._cdp.send("Fetch.fulfillRequest", {**answer, "responseHeaders": [*_HTML, still]})

    async def _ward(self, frame: str) -> Ward | None:
        """Who answers for a frame or worker: known by its target, by its environment, or told by the browser in time."""
        until = asyncio.get_running_loop().time() + _PATIENCE
        while (context := self._owner(frame)) is None:
            if asyncio.get_running_loop().time() >= until:
                return None
            if not await self._learn(frame):
                await asyncio.sleep(_PAUSE)
        return self._wards.get(context)

    def _owner(self, frame: str) -> str | None:
        """The context of a frame or worker, if it is known."""
        if frame not in self._contexts and (found := next((c for c, ward in self._wards.items() if ward.frames.has(frame)), None)):
            self._contexts[frame] = found
        return self._contexts.get(frame)

    async def _learn(self, frame: str) -> bool:
        """Ask all environments for their frames; whether this one is known then. Whoever does not answer at once is not waited for."""
        for context, ward in self._wards.items():
            if context not in self._questions:
                self._questions[context] = asyncio.ensure_future(self._ask(context, ward))
        if self._questions:
            await asyncio.wait(self._questions.values(), timeout=_PAUSE)
        return self._owner(frame) is not None

    async def _ask(self, context: str, ward: Ward) -> None:
        from playwright.async_api import Error

        try:
            await ward.frames.ask()
        except (Error, EnvironmentFailure):
            pass  # a page of that environment has gone: the others' requests are none of its business
        finally:
            del self._questions[context]


def _is_pdf(headers: Iterable[dict[str, str]], most: int) -> bool:
    """Whether a response is a PDF to be looked at, of at most so many bytes."""
    found = {each["name"].lower(): each["value"].lower() for each in headers}
    length = found.get("content-length", "0")
    shown = not found.get("content-disposition", "").startswith("attachment")
    return shown and "application/pdf" in found.get("content-type", "") and (not length.isdigit() or int(length) <= most)


def _is_page(headers: Iterable[dict[str, str]]) -> bool:
    """Whether a response is a document with scripts, not a picture or a download."""
    found = {each["name"].lower(): each["value"].lower() for each in headers}
    kind = found.get("content-type", "text/html")
    return ("html" in kind or "xml" in kind) and not found.get("content-disposition", "").startswith("attachment")
