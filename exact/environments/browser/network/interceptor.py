"""Interception of every request of a browser by CDP's Fetch, before it is sent.

Fetch on the browser's own session sees all requests: of every context, frame, popup, worker and redirect. Playwright's `route` does not see
redirects, and a session per target would come too late for popups. A request of a context without a gate is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections import OrderedDict
from collections.abc import Iterable
from contextlib import suppress
from http.client import responses
from typing import TYPE_CHECKING, Any

import msgspec

from exact.environments.base import SAFE_METHODS, SideEffect
from exact.environments.browser.network.body import ATTACHMENT, Bodies, BodyTooLarge, DocumentFate, as_page, fate_of
from exact.environments.browser.network.contexts import BrowserContexts
from exact.environments.browser.network.form import request_body
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.message import SOCKET_REPORTS, BrowserMessage, header, message_of, reported_socket
from exact.environments.browser.network.pace import Turns
from exact.environments.browser.network.recording import Recording, encoded
from exact.environments.browser.network.rules import Allow, Refuse
from exact.environments.browser.page.traffic import FailedNavigation
from exact.errors import EnvironmentFailure
from exact.origins import origin, split_url
from exact.slowness import Limit

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.cdp import CdpConnection

Event = dict[str, Any]
EVENTS = ("Target.targetCreated", "Target.targetDestroyed", "Fetch.requestPaused")
"""CDP events that the interceptor handles."""
_DOCUMENT_TYPES = ("Document", "Other")
"""Types of requests whose responses become documents or workers, which run under the response's content security policy. Chromium ignores
a policy that `continueResponse` adds to a document, so documents are fulfilled as a whole, up to a limit."""
_TRANSFER_HEADERS = ("content-encoding", "content-length", "transfer-encoding")
"""Headers about the body as it was transferred, which do not hold for the decoded body."""
_UNRECORDED = ("EventSource", "Media", "Ping", "Preflight")
"""Types of requests whose answers are not recorded."""
_AGAIN = b"<script>location.replace(location.href)</script>"
"""A document that requests its own address again. A fulfilled redirect to it would wait for the request that it ends."""
_HTML = ({"name": "Content-Type", "value": "text/html; charset=utf-8"},)
_LARGE_BODY = "its body is too large to be read before it is sent"
_MOST_SENT = 256
"""Requests that are remembered until they are redirected."""
_WORDS = re.compile(r"(?<=[a-z])([A-Z])")
"""Beginnings of the words in CDP's names of errors, other than the first."""
_MOST_WAITING = 2000
"""Requests of one context that may wait until others had their turn."""


class RequestInterceptor:
    """The interceptor of a browser's requests, which the gate of their context allows or refuses."""

    def __init__(self, cdp: CDPSession | CdpConnection, recording: Recording | None = None, *, shared: bool = False) -> None:
        """Create an interceptor on the session of the browser itself.

        `recording`: recording to which answers are written, or from which they are replayed. `shared`: the browser has other users too, so
        that requests of contexts that never had a gate pass untouched.
        """
        self._contexts = BrowserContexts(shared=shared)
        self._cdp, self._recording, self._bodies = cdp, recording, Bodies(cdp)
        self._tasks: dict[asyncio.Task[None], Event] = {}
        self._turns = Turns[Event](self._begin)
        """Requests that wait until others had their turn, by context; empty for that of unknown frames."""
        self._sent: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """Address and body of the last requests, by their ids: a redirect names the one that it answers."""
        self._resumed_requests: tuple[Event, ...] | None = None
        self._running = asyncio.Event()
        self._running.set()

    async def start(self) -> None:
        """Intercept from now on. Raises Playwright's Error or EnvironmentFailure."""
        self._cdp.on("Target.targetCreated", self._contexts.created)
        self._cdp.on("Target.targetDestroyed", self._contexts.destroyed)
        self._cdp.on("Fetch.requestPaused", self._request_paused)
        # On a resumed connection discovery is off for a moment, so that the browser reports all targets once more.
        discover = [False, True] if self._resumed_requests is not None else [True]
        await asyncio.gather(
            *(self._cdp.send("Target.setDiscoverTargets", {"discover": each}) for each in discover), self._cdp.send("Fetch.enable", {})
        )

    @property
    def busy(self) -> bool:
        """Return whether a request waits for an answer."""
        return bool(self._tasks or self._turns.waiting)

    @property
    def unanswered(self) -> tuple[Event, ...]:
        """Events of the requests that wait for an answer."""
        return (*self._tasks.values(), *self._turns.waiting)

    def continue_from(self, unanswered: tuple[Event, ...]) -> None:
        """Handle, after `start` and `resume`, requests that had no answer when the snapshot was taken. Call it before `start`."""
        self._resumed_requests = unanswered

    def pause(self) -> None:
        """Answer no request until `resume`."""
        self._running.clear()

    def resume(self) -> None:
        """Answer requests again, including those that came meanwhile."""
        self._running.set()
        requests, self._resumed_requests = self._resumed_requests or (), None
        for event in requests:
            self._request_paused(event)

    def stop(self) -> None:
        """Drop all waiting requests: the browser is being closed."""
        self._turns.clear()
        self._contexts.stop()
        for task in self._tasks:
            task.cancel()

    def register(self, context: str, gate: Gate) -> None:
        """Set the gate of a browser context, by its CDP id."""
        self._contexts.register(context, gate)

    def unregister(self, context: str) -> None:
        """Refuse all further requests of a context."""
        self._contexts.unregister(context)

    def _request_paused(self, event: Event) -> None:
        """Look at a request in its turn, so that a context which sends many holds up no other."""
        if self._contexts.is_over(frame := event.get("frameId", "")):
            return
        context, gate = self._contexts.known(frame)
        if self._turns.add(context, event) > _MOST_WAITING and gate:
            gate.end_pages(f"more than {_MOST_WAITING:,} of its requests wait to be looked at")
            self._turns.drop(context)

    def _begin(self, event: Event) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._tasks[task] = event
        task.add_done_callback(self._tasks.pop)

    async def _answer(self, event: Event) -> None:
        from playwright.async_api import Error

        await self._running.wait()
        try:
            if event.get("tooLarge"):
                await self._refuse_large(event)
            elif "responseStatusCode" in event or "responseErrorReason" in event:
                await self._response(event)
            else:
                await self._request(event)
        except (Error, EnvironmentFailure):
            with suppress(Error, EnvironmentFailure):  # the request, its page or the browser is gone; else the browser refuses the answer
                await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "Failed"})

    async def _request(self, event: Event) -> None:
        request, kind = event["request"], event["resourceType"]
        gate = await self._contexts.gate_of(event["frameId"])
        if gate is None and self._contexts.is_foreign(event["frameId"]):
            await self._cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]})
            return
        source, sent = self._sent.get(event.get("redirectedRequestId", ""), ("", ""))
        asked = message_of(event)._replace(source=source, sent=sent)
        if asked.is_report and request["url"] == SOCKET_REPORTS:
            await self._take_report(event, gate)
            return
        if gate is None:
            await self._refuse(event, None)  # a request that belongs to no page
            return
        decision = await gate.judge(asked)
        if asked.is_beacon:
            gate.beacon_judged(event.get("networkId", ""))
        if isinstance(decision, Refuse):
            if not gate.record_refused(decision.effect, asked):
                return  # a page that asks without end waits for ever, and delays no other
            await (self._pretend(event) if decision.pretends else self._refuse(event, gate))
            return
        self._remember(event["requestId"], asked)
        if request["url"] in gate.blank_pages:
            await self._cdp.send("Fetch.fulfillRequest", {"requestId": event["requestId"], "responseCode": 200, "responseHeaders": _HTML})
            return
        if self._recording and self._recording.mode == "replay":
            await self._replay(event, gate, decision)
            return
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if request["method"] not in SAFE_METHODS or kind in _DOCUMENT_TYPES or self._is_recorded(event):
            answer["interceptResponse"] = True
        if gate.rules.headers and origin(request["url"]) in gate.rules.own:
            named = {name.lower() for name in gate.rules.headers}
            other = [(name, value) for name, value in request["headers"].items() if name.lower() not in named]
            answer["headers"] = [{"name": name, "value": value} for name, value in (*other, *gate.rules.headers.items())]
        if decision.effect:
            answer["interceptResponse"] = True
            gate.log.record_write(event["requestId"], decision.effect, asked)
        await self._cdp.send("Fetch.continueRequest", answer)

    def _remember(self, id: str, message: BrowserMessage) -> None:
        """Remember a request that is sent, in case that it is redirected."""
        self._sent[id] = message.url, message.body
        if len(self._sent) > _MOST_SENT:
            self._sent.popitem(last=False)

    async def _refuse_large(self, event: Event) -> None:
        """Refuse a request whose body is too large to be read."""
        request, gate = event["request"], await self._contexts.gate_of(event["frameId"])
        if gate:
            gate.log.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail=_LARGE_BODY, write=False))
            gate.beacon_judged(event.get("networkId", ""))
        await self._refuse(event, gate)

    async def _take_report(self, event: Event, gate: Gate | None) -> None:
        """Record the WebSocket that the browser refused by our policy, and answer its report."""
        url = reported_socket(request_body(event["request"]))
        if gate and url:
            gate.record_refused_socket(url)
        await self._cdp.send("Fetch.fulfillRequest", {"requestId": event["requestId"], "responseCode": 204, "responseHeaders": []})

    def _is_recorded(self, event: Event) -> bool:
        """Return whether the answer to a request is recorded: it comes from the network and has an end."""
        return self._recording is not None and event["request"]["url"].startswith("http") and event["resourceType"] not in _UNRECORDED

    async def _pretend(self, event: Event) -> None:
        """Answer a harmless request that is not sent, like a site without anything to report."""
        request = event["request"]
        if event["resourceType"] in ("Document", "Ping"):
            answer: dict[str, Any] = {"responseCode": 204, "responseHeaders": []}
        else:
            headers = {"Content-Type": "application/json", "Access-Control-Allow-Credentials": "true"}
            if page := header(request, "origin"):
                headers["Access-Control-Allow-Origin"] = page
            named = [{"name": name, "value": value} for name, value in headers.items()]
            answer = {"responseCode": 200, "responseHeaders": named, "body": encoded(b"{}")}
        await self._cdp.send("Fetch.fulfillRequest", {"requestId": event["requestId"], **answer})

    async def _replay(self, event: Event, gate: Gate, decision: Allow) -> None:
        """Answer a request from the recording. Refuse it if it was never recorded."""
        assert self._recording is not None
        request = event["request"]
        if not request["url"].startswith("http"):
            await self._cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]})
            return
        found = self._recording.answer(request, gate.mask)
        if found is None:
            gate.log.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail="not in the recorded traffic"))
            await self._refuse(event, gate)
            return
        if decision.effect:
            gate.log.record(msgspec.structs.replace(decision.effect, reach="recording", status=found.status))
        headers = [{"name": name, "value": value} for name, value in found.headers if name.lower() not in _TRANSFER_HEADERS]
        if event["resourceType"] in _DOCUMENT_TYPES:
            headers.append({"name": "Content-Security-Policy", "value": gate.content_security_policy(request["url"])})
        answer = {"requestId": event["requestId"], **_status(found.status), "responseHeaders": headers, "body": encoded(found.body)}
        await self._cdp.send("Fetch.fulfillRequest", answer)

    def _record(self, event: Event, gate: Gate, body: bytes) -> None:
        """Record an answer."""
        assert self._recording is not None
        status = event["responseStatusCode"]
        headers = [(each["name"], each["value"]) for each in event.get("responseHeaders", ())]
        content = [(name, value) for name, value in headers if name.lower() not in _TRANSFER_HEADERS]
        self._recording.record(event["request"], status, content, body, gate.mask)

    async def _refuse(self, event: Event, gate: Gate | None) -> None:
        """Abort a request. An aborted navigation leaves the page as it was."""
        await self._fail(event, gate, "Aborted")

    async def _fail(self, event: Event, gate: Gate | None, reason: str) -> None:
        """Fail a request, for a reason by CDP's name. A popup that has no page yet, and gets none, is closed."""
        await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": reason})
        if gate and event["resourceType"] == "Document" and gate.forget_popup(event["frameId"]):
            await self._close_popup(event, gate, reason)

    async def _close_popup(self, event: Event, gate: Gate, reason: str) -> None:
        gate.closed_popup = FailedNavigation(event["request"]["url"], _WORDS.sub(r"_\1", reason).upper(), 0)
        await self._cdp.send("Target.closeTarget", {"targetId": event["frameId"]})

    async def _response(self, event: Event) -> None:
        request, status = event["request"], event.get("responseStatusCode", 0)
        gate = await self._contexts.gate_of(event["frameId"])
        if gate:
            gate.log.record_answer(event["requestId"], status)
        if gate and not status and (why := gate.log.failure(request["url"])):  # the browser knows only that its proxy did not connect
            await self._fail(event, gate, why)
        elif gate and (reason := _failure(event)) and gate.forget_popup(event["frameId"]):
            await self._pass(event)
            await self._close_popup(event, gate, reason)
        elif gate is None or not status:
            await self._pass(event)
        else:
            try:
                await self._answer_response(event, gate)
            except BodyTooLarge:
                gate.record_too_large(event["frameId"], request["method"], request["url"])
                await self._refuse(event, gate)

    async def _answer_response(self, event: Event, gate: Gate) -> None:
        """Answer with a response of a server. Raises BodyTooLarge."""
        request, status, kind = event["request"], event["responseStatusCode"], event["resourceType"]
        given, fate = event.get("responseHeaders", []), fate_of(status, event.get("responseHeaders", ()))
        if kind == "Document" and fate is not DocumentFate.PASSED:
            gate.document_came(event["frameId"], request["url"], is_shown=fate is DocumentFate.DOCUMENT)
        if kind == "Document" and status == 401:
            gate.unauthorized = request["url"]
        body = None
        if self._is_recorded(event):
            body = b"" if 300 <= status < 400 else await self._bodies.whole(event, gate.rules.body_bytes)  # CDP gives none for redirects
            self._record(event, gate, body)
        csp = {"name": "Content-Security-Policy", "value": gate.content_security_policy(request["url"])}
        if kind == "Document" and status == 200 and _is_pdf(given, gate.rules.document_bytes):
            gate.partial.pop(event["frameId"], None)
            await self._show_pdf(event, body if body is not None else await self._bodies.whole(event, gate.rules.document_bytes))
        elif kind == "Document" and fate is DocumentFate.DOCUMENT:
            await self._answer_document(event, gate, body, csp)
        elif kind == "Document" and fate is DocumentFate.DOWNLOAD:
            await self._pass(event, ATTACHMENT)
        elif kind in _DOCUMENT_TYPES and fate is not DocumentFate.PASSED:
            await self._pass(event, csp)
        else:
            await self._pass(event)

    async def _answer_document(self, event: Event, gate: Gate, body: bytes | None, csp: dict[str, str]) -> None:
        """Answer with a document as far as it comes in time, but to an evaluator with the whole or a failure. Raises BodyTooLarge.

        `body`: the document, if it was read before.
        """
        frame, ended = event["frameId"], True
        gate.partial[frame] = event["request"]["url"]
        if body is None and gate.is_judged:
            try:
                async with Limit(gate.rules.document_seconds):
                    body = await self._bodies.whole(event, gate.rules.body_bytes)
            except TimeoutError:
                await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "TimedOut"})
                return
        elif body is None:
            if (read := await self._bodies.read(event, gate.rules.document_seconds, gate.rules.body_bytes)) is None:
                await self._ask_again(event, csp)
                return
            body, ended = read
        if ended:
            gate.partial.pop(frame, None)  # unless another document of the frame came before
        await self._fulfill(event, body, csp)

    async def _pass(self, event: Event, *more: dict[str, str]) -> None:
        """Let a response through unchanged, with further headers."""
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if more:
            status = _status(event["responseStatusCode"], event.get("responseStatusText", ""))
            answer |= {**status, "responseHeaders": [*event.get("responseHeaders", ()), *more]}
        await self._cdp.send("Fetch.continueResponse", answer)

    async def _fulfill(self, event: Event, body: bytes, csp: dict[str, str]) -> None:
        """Answer with a document."""
        kept = [each for each in event.get("responseHeaders", ()) if each["name"].lower() not in _TRANSFER_HEADERS]
        status = _status(event["responseStatusCode"], event.get("responseStatusText", ""))
        answer = {"requestId": event["requestId"], **status, "responseHeaders": [*kept, csp], "body": encoded(body)}
        await self._cdp.send("Fetch.fulfillRequest", answer)

    async def _ask_again(self, event: Event, csp: dict[str, str]) -> None:
        """Answer with a document that requests its own address again."""
        status = _status(event["responseStatusCode"], event.get("responseStatusText", ""))
        answer = {"requestId": event["requestId"], **status, "responseHeaders": [*_HTML, csp], "body": encoded(_AGAIN)}
        await self._cdp.send("Fetch.fulfillRequest", answer)

    async def _show_pdf(self, event: Event, body: bytes) -> None:
        """Answer with the text of a PDF as a page without scripts."""
        page = await asyncio.to_thread(as_page, body, split_url(event["request"]["url"]).path)
        answer = {"requestId": event["requestId"], "responseCode": 200, "body": encoded(page)}
        still = {"name": "Content-Security-Policy", "value": "default-src 'none'"}
        await self._cdp.send("Fetch.fulfillRequest", {**answer, "responseHeaders": [*_HTML, still]})


def _failure(event: Event) -> str:
    """Return why a document did not come, by CDP's name; empty if it did, or if it was aborted."""
    reason = str(event.get("responseErrorReason", "")) if event["resourceType"] == "Document" else ""
    return "" if reason == "Aborted" else reason


def _status(status: int, phrase: str = "") -> dict[str, Any]:
    """Return the status of an answer for CDP, which refuses a number without a known phrase unless one is given."""
    given = phrase.strip() if phrase.isascii() and phrase.isprintable() else ""
    return {"responseCode": status, "responsePhrase": given or responses.get(status, "") or "Unnamed"}


def _is_pdf(headers: Iterable[dict[str, str]], max_bytes: int) -> bool:
    """Return whether a response is a PDF to be shown, of at most `max_bytes` bytes."""
    found = {each["name"].lower(): each["value"].lower() for each in headers}
    length = found.get("content-length", "0")
    shown = not found.get("content-disposition", "").startswith("attachment")
    return shown and "application/pdf" in found.get("content-type", "") and (not length.isdigit() or int(length) <= max_bytes)
