"""Judges every request of a browser before it is sent.

One CDP `Fetch` on the browser's own session sees all of them from the first on: every context, frame, popup, worker and redirect hop
(Playwright's `route` does not see redirects, and a session for each target would come too late for popups). A request of a context that
nobody answers for is refused.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from exact.environments.base import SideEffect
from exact.environments.browser.network.pdf import as_page
from exact.environments.browser.network.policy import READS, RequestPolicy
from exact.environments.browser.network.recording import Recording, encoded
from exact.errors import EnvironmentFailure
from exact.safety import origin

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.connection import CdpConnection

Event = dict[str, Any]
EVENTS = ("Target.targetCreated", "Target.targetDestroyed", "Fetch.requestPaused")
"""What it hears of."""
_SCRIPTED = ("Document", "Other")
"""Kinds of requests whose responses become documents or workers, in which scripts run under the response's policy. Chromium takes a
document's policy from what the server sent, whatever `continueResponse` says, so documents are handed over as a whole."""
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that hold for the body as it was sent, not as it is handed on."""
_ENDLESS = ("EventSource", "Media", "Ping", "Preflight")
"""Kinds of answers that are not recorded."""
_HTML = ({"name": "Content-Type", "value": "text/html; charset=utf-8"},)
_FRAME_TIMEOUT = 1.0
"""Seconds a request of a frame that is not known yet is held back before it is refused."""
_PAUSE = 0.02
"""Seconds between two looks for its frame."""


class RequestInterceptor:
    """The one judge of a browser's requests; each context's RequestPolicy gives the rules."""

    def __init__(self, cdp: CDPSession | CdpConnection, recording: Recording | None = None) -> None:
        """`recording`: where answers are recorded, or where they come from."""
        self._cdp, self._recording = cdp, recording
        self._policies: dict[str, RequestPolicy] = {}
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

    def continue_from(self, unanswered: tuple[Event, ...]) -> None:
        """Before `start`, over a conversation that goes on: judge what was not answered then."""
        self._asked = unanswered

    def pause(self) -> None:
        """Answer no request until `go`."""
        self._going.clear()

    def resume(self) -> None:
        """Answer requests, those that came meanwhile too."""
        self._going.set()
        asked, self._asked = self._asked or (), None
        for event in asked:
            self._paused(event)

    def stop(self) -> None:
        """Judge nothing any more: the browser goes, with all that asks."""
        for task in (*self._tasks, *self._questions.values()):
            task.cancel()

    def register(self, context: str, policy: RequestPolicy) -> None:
        """Answer for a browser context, by its CDP id."""
        self._policies[context] = policy

    def unregister(self, context: str) -> None:
        """Refuse all further requests of a context."""
        self._policies.pop(context, None)
        self._contexts = {frame: owner for frame, owner in self._contexts.items() if owner != context}

    def _target(self, event: Event) -> None:
        info = event["targetInfo"]
        target, context = info["targetId"], info.get("browserContextId", "")
        new, self._contexts[target] = target not in self._contexts, context
        if new and info["type"] == "page" and context in self._policies:
            self._policies[context].expect_popup(target)

    def _gone(self, event: Event) -> None:
        context = self._contexts.pop(event["targetId"], "")
        if context in self._policies:
            self._policies[context].forget_popup(event["targetId"])

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
        policy = await self._policy_of(event["frameId"])
        reason = policy.refusal(request["method"], request["url"]) if policy else "a request that belongs to no page"
        if reason:
            if policy:
                policy.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail=reason))
            await self._refuse(event, policy)
            return
        if policy and request["url"] in policy.blanks:
            await self._cdp.send("Fetch.fulfillRequest", {"requestId": event["requestId"], "responseCode": 200, "responseHeaders": _HTML})
            return
        if policy and self._recording and self._recording.mode == "replay":
            await self._replay(event, policy)
            return
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if request["method"] not in READS or kind in _SCRIPTED or self._records(event):
            answer["interceptResponse"] = True
        if policy and policy.headers and origin(request["url"]) in policy.own:
            named = {name.lower() for name in policy.headers}
            kept = [(name, value) for name, value in request["headers"].items() if name.lower() not in named]
            answer["headers"] = [{"name": name, "value": value} for name, value in (*kept, *policy.headers.items())]
        if policy and request["method"] not in READS:
            policy.record_write(event["requestId"], SideEffect(kind="request", method=request["method"], url=request["url"]))
        await self._cdp.send("Fetch.continueRequest", answer)

    def _records(self, event: Event) -> bool:
        """Whether an answer is written down: it comes over the network, and has an end."""
        return self._recording is not None and event["request"]["url"].startswith("http") and event["resourceType"] not in _ENDLESS

    async def _replay(self, event: Event, policy: RequestPolicy) -> None:
        """Answer from the recording, where this was asked before."""
        assert self._recording is not None
        request = event["request"]
        if not request["url"].startswith("http"):
            await self._cdp.send("Fetch.continueRequest", {"requestId": event["requestId"]})
            return
        found = self._recording.answer(request, policy.mask)
        if found is None:
            policy.record(SideEffect(kind="blocked", method=request["method"], url=request["url"], detail="not in the recorded traffic"))
            await self._refuse(event, policy)
            return
        if request["method"] not in READS:
            policy.record(SideEffect(kind="request", method=request["method"], url=request["url"], status=found.status))
        headers = [{"name": name, "value": value} for name, value in found.headers if name.lower() not in _OF_THE_WIRE]
        if event["resourceType"] in _SCRIPTED:
            headers.append({"name": "Content-Security-Policy", "value": policy.content_security_policy()})
        answer = {"requestId": event["requestId"], "responseCode": found.status, "responseHeaders": headers, "body": encoded(found.body)}
        await self._cdp.send("Fetch.fulfillRequest", answer)

    async def _record(self, event: Event, policy: RequestPolicy) -> None:
        """Write an answer down. The body of a redirect cannot be had, and a download's goes to nobody."""
        assert self._recording is not None
        status, body = event["responseStatusCode"], b""
        if not 300 <= status < 400:
            got = await self._cdp.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
            body = base64.b64decode(got["body"]) if got["base64Encoded"] else got["body"].encode()
        headers = [(each["name"], each["value"]) for each in event.get("responseHeaders", ())]
        kept = [(name, value) for name, value in headers if name.lower() not in _OF_THE_WIRE]
        self._recording.record(event["request"], status, kept, body, policy.mask)

    async def _refuse(self, event: Event, policy: RequestPolicy | None) -> None:
        """Aborting a navigation leaves the page as it was; a popup that never became a page is closed."""
        await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "Aborted"})
        if policy and event["resourceType"] == "Document" and policy.forget_popup(event["frameId"]):
            await self._cdp.send("Target.closeTarget", {"targetId": event["frameId"]})

    async def _response(self, event: Event) -> None:
        request, status = event["request"], event.get("responseStatusCode", 0)
        policy = await self._policy_of(event["frameId"])
        if policy:
            policy.record_answer(event["requestId"], status)
        if policy and status and self._records(event):
            await self._record(event, policy)
        if policy and status == 401 and event["resourceType"] == "Document":
            policy.unauthorized = request["url"]
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if policy is None or event["resourceType"] not in _SCRIPTED or not 200 <= status < 600 or 300 <= status < 400:
            await self._cdp.send("Fetch.continueResponse", answer)
            return
        given = event.get("responseHeaders", ())
        csp = {"name": "Content-Security-Policy", "value": policy.content_security_policy()}
        if event["resourceType"] == "Document" and status == 200 and _is_pdf(given, policy.most):
            await self._show_pdf(event)
            return
        answer |= {"responseCode": status, "responseHeaders": [*given, csp]}
        if event["resourceType"] == "Other" or not _is_page(given):
            await self._cdp.send("Fetch.continueResponse", answer)
            return
        body = await self._cdp.send("Fetch.getResponseBody", {"requestId": event["requestId"]})
        answer["responseHeaders"] = [*(each for each in given if each["name"].lower() not in _OF_THE_WIRE), csp]
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

    async def _policy_of(self, frame: str) -> RequestPolicy | None:
        """Who answers for a frame or worker: known by its target, by its environment, or told by the browser in time."""
        until = asyncio.get_running_loop().time() + _FRAME_TIMEOUT
        while (context := self._owner(frame)) is None:
            if asyncio.get_running_loop().time() >= until:
                return None
            if not await self._learn(frame):
                await asyncio.sleep(_PAUSE)
        return self._policies.get(context)

    def _owner(self, frame: str) -> str | None:
        """The context of a frame or worker, if it is known."""
        if frame not in self._contexts and (found := next((c for c, policy in self._policies.items() if policy.frames.has(frame)), None)):
            self._contexts[frame] = found
        return self._contexts.get(frame)

    async def _learn(self, frame: str) -> bool:
        """Ask all environments for their frames; whether this one is known then. Whoever does not answer at once is not waited for."""
        for context, policy in self._policies.items():
            if context not in self._questions:
                self._questions[context] = asyncio.ensure_future(self._ask(context, policy))
        if self._questions:
            await asyncio.wait(self._questions.values(), timeout=_PAUSE)
        return self._owner(frame) is not None

    async def _ask(self, context: str, policy: RequestPolicy) -> None:
        from playwright.async_api import Error

        try:
            await policy.frames.ask()
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
