"""Judges every request of a browser before it is sent.

One CDP `Fetch` on the browser's own session sees all of them from the first on: every context, frame, popup, worker and redirect hop
(Playwright's `route` does not see redirects, and a session for each target would come too late for popups). A request of a context that
nobody answers for is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

from exact.environments.base import Effect
from exact.safety import refusal

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

Event = dict[str, Any]
_READS = ("GET", "HEAD", "OPTIONS")
_PATIENCE = 1.0
"""Seconds a request of a frame that is not known yet is held back before it is refused."""


class Ward:
    """What one browser context may do, and what it did since it was last asked."""

    def __init__(self, allowed: Iterable[str], *, writes: bool, frames: Callable[[], Awaitable[set[str]]]) -> None:
        """`allowed`: origins. `writes`: whether methods that change the outside are sent. `frames` gives the ids of all frames now."""
        self.allowed, self.writes, self.frames = tuple(allowed), writes, frames
        self._effects: list[Effect] = []

    def record(self, effect: Effect) -> None:
        """Note something the context did."""
        self._effects.append(effect)

    def take(self) -> tuple[Effect, ...]:
        """What happened since the last call."""
        effects, self._effects = tuple(self._effects), []
        return effects

    def refusal(self, method: str, url: str) -> str:
        """Why a request is not sent; empty if it is."""
        if method not in _READS and not self.writes:
            return "a write while exploring"
        return refusal(url, self.allowed)

    def policy(self) -> str:
        """A content security policy that holds for what `Fetch` does not see: WebSockets and WebTransport."""
        sockets = [o.replace("http", "ws", 1) for o in self.allowed if o.startswith("http")] if self.writes else []
        return " ".join(("connect-src http: https: data: blob: filesystem:", *sockets))


class Guard:
    """The one judge of a browser's requests; each context's Ward gives the rules."""

    def __init__(self, cdp: CDPSession) -> None:
        self._cdp = cdp
        self._wards: dict[str, Ward] = {}
        self._contexts: dict[str, str] = {}
        self._blank: set[str] = set()
        self._methods: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Judge from now on."""
        self._cdp.on("Target.targetCreated", self._target)
        self._cdp.on("Target.targetInfoChanged", self._target)
        self._cdp.on("Target.targetDestroyed", self._gone)
        self._cdp.on("Fetch.requestPaused", self._paused)
        await asyncio.gather(self._cdp.send("Target.setDiscoverTargets", {"discover": True}), self._cdp.send("Fetch.enable", {}))

    def admit(self, context: str, ward: Ward) -> None:
        """Answer for a browser context, by its CDP id."""
        self._wards[context] = ward

    def dismiss(self, context: str) -> None:
        """Refuse all further requests of a context."""
        self._wards.pop(context, None)
        self._contexts = {frame: owner for frame, owner in self._contexts.items() if owner != context}

    def _target(self, event: Event) -> None:
        info = event["targetInfo"]
        self._contexts[info["targetId"]] = info.get("browserContextId", "")
        if info["type"] == "page" and info["url"] in ("", "about:blank"):
            self._blank.add(info["targetId"])
        else:
            self._blank.discard(info["targetId"])

    def _gone(self, event: Event) -> None:
        self._contexts.pop(event["targetId"], None)
        self._blank.discard(event["targetId"])

    def _paused(self, event: Event) -> None:
        task = asyncio.ensure_future(self._answer(event))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, event: Event) -> None:
        from playwright.async_api import Error

        try:
            if "responseStatusCode" in event or "responseErrorReason" in event:
                await self._response(event)
            else:
                await self._request(event)
        except Error:
            pass  # the request, its page or the browser is gone: there is nobody to answer to

    async def _request(self, event: Event) -> None:
        request, kind = event["request"], event["resourceType"]
        ward = await self._ward(event["frameId"])
        reason = ward.refusal(request["method"], request["url"]) if ward else "a request that belongs to no page"
        if reason:
            if ward:
                ward.record(Effect(kind="blocked", method=request["method"], url=request["url"], detail=reason))
            await self._refuse(event)
            return
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if request["method"] not in _READS or _makes_a_world(kind, event):
            answer["interceptResponse"] = True
        await self._cdp.send("Fetch.continueRequest", answer)

    async def _refuse(self, event: Event) -> None:
        """Aborting a navigation leaves the page as it was; a popup that never became a page is closed."""
        await self._cdp.send("Fetch.failRequest", {"requestId": event["requestId"], "errorReason": "Aborted"})
        if event["resourceType"] == "Document" and event["frameId"] in self._blank:
            opener = await self._cdp.send("Target.getTargetInfo", {"targetId": event["frameId"]})
            if opener["targetInfo"].get("openerId"):
                await self._cdp.send("Target.closeTarget", {"targetId": event["frameId"]})

    async def _response(self, event: Event) -> None:
        request, status = event["request"], event.get("responseStatusCode", 0)
        ward = await self._ward(event["frameId"])
        if ward and request["method"] not in _READS:
            ward.record(Effect(kind="request", method=request["method"], url=request["url"], status=status))
        answer: dict[str, Any] = {"requestId": event["requestId"]}
        if ward and status and _makes_a_world(event["resourceType"], event):
            policy = {"name": "Content-Security-Policy", "value": ward.policy()}
            answer |= {"responseCode": status, "responseHeaders": [*event.get("responseHeaders", ()), policy]}
        await self._cdp.send("Fetch.continueResponse", answer)

    async def _ward(self, frame: str) -> Ward | None:
        """Who answers for a frame or worker: known by its target, else found in the frame trees."""
        context = self._contexts.get(frame)
        if context is not None:
            return self._wards.get(context)
        until = asyncio.get_running_loop().time() + _PATIENCE
        while asyncio.get_running_loop().time() < until:
            for context, ward in list(self._wards.items()):
                for found in await ward.frames():
                    self._contexts[found] = context
            if frame in self._contexts:
                return self._wards.get(self._contexts[frame])
            await asyncio.sleep(0.02)
        return None


def _makes_a_world(kind: str, event: Event) -> bool:
    """Whether the response becomes a document or a worker, in which scripts run under its policy."""
    return kind == "Document" or event["request"].get("headers", {}).get("Sec-Fetch-Dest", "") in ("worker", "sharedworker")
