"""Requests and navigations that a page has in flight, from the events of its CDP session."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.background import BackgroundRequests, request_key

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Event = dict[str, Any]
_UNTRACKED = ("WebSocket", "Ping", "CSPViolationReport", "Prefetch", "Preflight")
"""Types of requests that do not belong to the page, or that the browser reports otherwise."""
_STREAMS = ("EventSource", "Media")
"""Types of requests that have no end."""
_SCRIPTED = ("XHR", "Fetch", "EventSource")
"""Types of requests that do not delay the load event of their document."""
_FETCHING = ("XHR", "Fetch", "Script")
_RECENT = 1.0
"""Seconds before the end of a wait within which a page began a request that kept it from becoming quiet."""
_GRACE = 0.5
"""Seconds that a request is waited for whose kind was waited for in vain before."""


class FailedNavigation(NamedTuple):
    """A navigation of the main frame that brought no document."""

    url: str
    error: str
    """Chromium's name of the error without `net::ERR_`. `ABORTED`: the page stays."""
    status: int
    """HTTP status of the answer; 0 if there was none."""


@dataclass
class _Request:
    kind: str
    url: str
    key: str
    frame: str
    loader: str
    begun: float
    """Time of the event loop."""
    background: bool = False
    """Flag that it is not waited for."""


class Traffic:
    """Requests in flight, loading frames, downloads, and navigations that were requested but have not begun."""

    def __init__(self, cdp: Cdp, known: BackgroundRequests | None = None) -> None:
        """Listen to a page's session. `known`: the learned background requests."""
        self.main_frame = ""
        """CDP id of the main frame."""
        self.started = 0
        """Number of requests and navigations begun so far that are waited for."""
        self.documents = 0
        """Number of documents that the main frame has had."""
        self.denied = ""
        """The last address that was answered with status 401 or 403; the reader empties it."""
        self.redirected = ""
        """The last address to which a request was redirected, for a document or for a script; the reader empties it."""
        self.status = 0
        """HTTP status of the last answer to a navigation of the main frame since the mark; 0 before the first one."""
        self.failed: FailedNavigation | None = None
        """The last navigation of the main frame since the mark, if it failed."""
        self._known = known or BackgroundRequests()
        self._requests: dict[str, _Request] = {}
        self._open: defaultdict[str, dict[str, _Request]] = defaultdict(dict)
        """Requests in flight without an answer, by kind and id, the oldest first."""
        self._answers: dict[str, str] = {}
        """Addresses of requests by `fetch` whose response has begun and whose body has not ended, by request id."""
        self._arriving = ""
        """Id of the main frame's request for its next document; empty if there is none."""
        self._frames: set[str] = set()
        self._unfinished: set[str] = set()
        """Loading frames that are not waited for."""
        self.beacons: set[str] = set()
        """Requests in flight whose answer no page reads, by id. They are waited for only until the gate has judged them."""
        self._downloads: set[str] = set()
        self._earlier_downloads: set[str] = set()
        self._answered: Counter[str] = Counter()
        """Kinds of requests that were answered since the mark, or since the document came."""
        self._most: Counter[str] = Counter()
        """Maximum number of requests of a kind without an answer at once, in the same time."""
        self._repeats: dict[str, float] = {}
        """Last begin of a request of each kind of which one had been answered in the same time, or had waited long for its answer."""
        self._fresh = True
        """Whether the document came after the mark."""
        self._leaving = False
        self._changed = asyncio.Event()
        for name, handler in (
            ("Network.requestWillBeSent", self._request_sent),
            ("Network.responseReceived", self._response_received),
            ("Network.loadingFinished", self._request_finished),
            ("Network.loadingFailed", self._request_failed),
            ("Page.frameRequestedNavigation", self._navigation_requested),
            ("Page.frameStartedLoading", self._frame_loading),
            ("Page.frameStoppedLoading", self._frame_stopped),
            ("Page.frameDetached", self._frame_detached),
            ("Page.frameNavigated", self._frame_navigated),
            ("Page.navigatedWithinDocument", self._frame_stopped),
            ("Page.downloadWillBegin", self._frame_stopped),
            ("Page.downloadWillBegin", self._download_begun),
            ("Page.downloadProgress", self._download_progress),
            ("Page.javascriptDialogOpening", self._dialog_opening),
            ("Page.javascriptDialogClosed", self._dialog_closed),
        ):
            cdp.on(name, handler)

    def mark(self) -> None:
        """Wait only for requests that begin after now, and for the document that is arriving."""
        self._leave_behind()
        self._answered.clear()
        self._most.clear()
        self._repeats.clear()
        self._fresh = False
        self.status, self.failed = 0, None

    def give_up(self, seconds: float) -> None:
        """Wait no more for requests in flight, which took longer than `seconds`.

        Learn the kinds of requests that the document made by itself: while it loaded, or again and again up to now.
        """
        recent = asyncio.get_running_loop().time() - _RECENT
        for key, begun in self._repeats.items():
            if begun > recent:
                self._known.learn(key, self._most[key], seconds, repeated=True)
        for id, request in self._requests.items():
            if self._fresh and not (request.background or request.key in self._repeats or self._is_main_document(id, request)):
                self._known.learn(request.key, self._most[request.key], seconds, repeated=False)
        self._leave_behind()

    def end(self) -> None:
        """Forget requests in flight: the page has closed, and the browser will not report its end."""
        self._requests, self._answers, self._arriving = {}, {}, ""
        self._open.clear()
        self._frames, self._unfinished, self._downloads, self.beacons = set(), set(), set(), set()
        self._changed.set()

    async def idle(self) -> None:
        """Wait until nothing that is waited for is in flight, except bodies of answers to `fetch`, or until a document is arriving."""
        await self._until(lambda: self.is_idle or self.is_arriving)

    async def leaving(self) -> None:
        """Wait until the main frame's next document is requested."""
        await self._until(lambda: self.is_arriving)

    async def arrived(self) -> None:
        """Wait until the main frame's next document is there, or will not come."""
        await self._until(lambda: not self.is_arriving)

    async def judged(self, is_judged: Callable[[str], bool]) -> None:
        """Wait until no beacon is in flight that is not judged, by its id."""
        await self._until(lambda: all(map(is_judged, self.beacons)))

    def look_again(self) -> None:
        """Let what waits look again."""
        self._changed.set()

    async def change(self) -> None:
        """Wait until something begins or ends."""
        self._changed.clear()
        await self._changed.wait()

    def unfinished_reads(self, unread: list[str]) -> set[str]:
        """Return the requests that are waited for, whose body is arriving and being read.

        `unread`: addresses of answers that the page does not read.
        """
        left = Counter(unread)
        read = set[str]()
        for id, url in self._answers.items():
            if left[url]:
                left[url] -= 1
            elif not self._requests[id].background:
                read.add(id)
        return read

    async def any_ended(self, requests: set[str]) -> None:
        """Wait until one of the requests has ended or is waited for no more."""
        await self._until(lambda: not all(id in self._requests and not self._requests[id].background for id in requests))

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is in flight that `idle` waits for."""
        waited = (
            id for id, each in self._requests.items() if not each.background and each.kind not in _STREAMS and id not in self._answers
        )
        return not (self._waited_frames or self._downloads - self._earlier_downloads or any(True for _ in waited))

    @property
    def is_arriving(self) -> bool:
        """Return whether a server is being asked for the main frame's next document."""
        return self._arriving in self._requests

    @property
    def is_partial(self) -> bool:
        """Return whether a frame is loading that is not waited for: the document is there, but its load event may never come."""
        return bool(self._frames - self._waited_frames)

    @property
    def is_fetching(self) -> bool:
        """Return whether a request of a script, or for one, is in flight that is waited for."""
        return any(each.kind in _FETCHING and not each.background for each in self._requests.values())

    @property
    def streaming(self) -> bool:
        """Return whether a response is arriving, whether or not it is waited for."""
        return bool(self._requests)

    @property
    def navigating(self) -> bool:
        """Return whether a frame is loading a document that is waited for."""
        return bool(self._waited_frames)

    @property
    def _waited_frames(self) -> set[str]:
        loading = self._frames - self._unfinished
        held = any(each.background and each.kind not in _SCRIPTED for each in self._requests.values())
        return set() if loading and held and not self.is_arriving else loading

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            await self.change()

    def _leave_behind(self) -> None:
        """Wait no more for requests in flight, except for the document that is arriving."""
        for id, request in self._requests.items():
            request.background = request.background or id != self._arriving
        self._unfinished = self._frames - ({self.main_frame} if self.is_arriving else set())
        self._earlier_downloads, self.beacons = set(self._downloads), set()
        self._changed.set()

    def _is_main_document(self, id: str, request: _Request) -> bool:
        return id == request.loader and request.frame == self.main_frame

    def _is_asked_again(self, request: _Request) -> bool:
        """Return whether one of the same kind is waited for that began a while before, and has no answer yet."""
        oldest = next((each for each in self._open[request.key].values() if not each.background), request)
        return request.begun - oldest.begun > _GRACE

    def _request_sent(self, event: Event) -> None:
        kind, id = event.get("type", ""), event["requestId"]
        if "redirectResponse" in event:
            self.redirected = event["request"]["url"]
        if kind == "Ping":
            self.beacons.add(id)
        if kind in _UNTRACKED:
            return
        if before := self._requests.get(id):  # the request that a redirect answered
            self._close(id, before)
        self._requests[id] = request = _Request(
            kind, event["request"]["url"], request_key(event), event.get("frameId", ""), event.get("loaderId", ""),
            before.begun if before else asyncio.get_running_loop().time(), before is not None and before.background,
        )  # fmt: skip
        others = self._open[request.key]
        if before:  # it began before them
            self._open[request.key] = {id: request, **others}
        else:
            others[id] = request
        if self._is_main_document(id, request):
            self._arriving = id
        elif not before:
            self._recognize(id, request)
        self.started += kind not in _STREAMS and not request.background
        self._changed.set()

    def _recognize(self, id: str, request: _Request) -> None:
        """Do not wait for a request of a known kind, unless more of them are in flight than the page makes by itself."""
        known, unanswered = self._known.at_once(request.key), len(self._open[request.key])
        self._most[request.key] = max(self._most[request.key], unanswered)
        repeated = self._answered[request.key] > 0
        if repeated or self._is_asked_again(request):
            self._repeats[request.key] = request.begun
        if unanswered > known:
            return
        if repeated or known > 1:
            request.background = True
        else:  # it may be answered in time now
            asyncio.get_running_loop().call_later(_GRACE, self._spare, id)

    def _spare(self, id: str) -> None:
        if request := self._requests.get(id):
            request.background = True
            self._changed.set()

    def _response_received(self, event: Event) -> None:
        self.beacons.discard(event["requestId"])
        if event["response"]["status"] in (401, 403):
            self.denied = event["response"]["url"]
        request = self._requests.get(event["requestId"])
        if request:
            self._answer(event["requestId"], request)
        if request and event.get("type") == "Fetch":
            self._answers[event["requestId"]] = event["response"]["url"]
        elif request and self._is_main_document(event["requestId"], request):
            self.status = event["response"]["status"]
        self._changed.set()

    def _answer(self, id: str, request: _Request) -> None:
        self._answered[request.key] += self._close(id, request)

    def _close(self, id: str, request: _Request) -> bool:
        """Note that a request waits no more for an answer. Return whether it did."""
        others = self._open.get(request.key, {})
        waited = others.pop(id, None) is not None
        if not others:
            self._open.pop(request.key, None)
        return waited

    def _request_finished(self, event: Event) -> None:
        if request := self._requests.pop(event["requestId"], None):
            self._answer(event["requestId"], request)
            self._known.ended(request.key, asyncio.get_running_loop().time() - request.begun)
        self._answers.pop(event["requestId"], None)
        self.beacons.discard(event["requestId"])
        self._changed.set()

    def _request_failed(self, event: Event) -> None:
        id = event["requestId"]
        if (request := self._requests.get(id)) and self._is_main_document(id, request):
            self.failed = FailedNavigation(request.url, event["errorText"].removeprefix("net::ERR_"), self.status)
        self._request_finished(event)

    def _navigation_requested(self, event: Event) -> None:
        if event.get("disposition") == "currentTab" and not event.get("url", "").startswith("javascript:"):
            self._frame_loading(event)

    def _frame_loading(self, event: Event) -> None:
        self.started += 1
        self._frames.add(event["frameId"])
        self._unfinished.discard(event["frameId"])
        self._changed.set()

    def _frame_stopped(self, event: Event) -> None:
        self._frames.discard(event["frameId"])
        self._changed.set()

    def _frame_detached(self, event: Event) -> None:
        self._frame_stopped(event)
        self._forget(lambda request: request.frame == event["frameId"])

    def _download_begun(self, event: Event) -> None:
        self.started += 1
        self._downloads.add(event["guid"])
        self._changed.set()

    def _download_progress(self, event: Event) -> None:
        if event["state"] != "inProgress":
            self._downloads.discard(event["guid"])
            self._changed.set()

    def _dialog_opening(self, event: Event) -> None:
        self._leaving = event["type"] == "beforeunload"

    def _dialog_closed(self, event: Event) -> None:
        """Forget loading frames if the page was not left: the browser does not report that the load was given up."""
        if self._leaving and not event["result"]:
            self._frames.clear()
            self._changed.set()
        self._leaving = False

    def _frame_navigated(self, event: Event) -> None:
        """Forget requests of the document that was left: they never finish."""
        frame = event["frame"]
        if "parentId" in frame:
            self._forget(lambda request: request.frame == frame["id"] and request.loader != frame["loaderId"])
            return
        self.main_frame = frame["id"]
        self.documents += 1
        if "unreachableUrl" not in frame:  # else it is the browser's own page about the error
            self.failed = None
        self._fresh = True
        self._answered.clear()
        self._most.clear()
        self._repeats.clear()
        if self._arriving == frame["loaderId"]:
            self._arriving = ""
        self._frames &= {frame["id"]}  # the browser does not report that the frames inside are gone
        self._unfinished.clear()
        arriving = self._requests.get(self._arriving)
        self._forget(lambda request: request.loader != frame["loaderId"] and request is not arriving)

    def _forget(self, gone: Callable[[_Request], bool]) -> None:
        for id in [id for id, request in self._requests.items() if gone(request)]:
            self._close(id, self._requests.pop(id))
        self._answers = {id: url for id, url in self._answers.items() if id in self._requests}
        self._changed.set()
