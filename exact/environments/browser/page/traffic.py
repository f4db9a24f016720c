"""Requests and navigations that a page has in flight, from the events of its CDP session."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Event = dict[str, Any]
_ENDLESS = ("EventSource", "WebSocket", "Ping", "CSPViolationReport", "Media", "Prefetch", "Preflight")
"""Types of requests that are not waited for: they have no end, or do not belong to the page."""


class Traffic:
    """Requests in flight, loading frames, downloads, and navigations that were requested but have not begun."""

    def __init__(self, cdp: Cdp) -> None:
        self.started = 0
        """Number of requests and navigations begun so far."""
        self.documents = 0
        """Number of documents that the main frame has had."""
        self._requests: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        """Addresses of requests by `fetch` whose response has begun and whose body has not ended, by request id."""
        self._ended = asyncio.Event()
        self._leaving = False
        self._streams: dict[str, str] = {}
        self._frames: set[str] = set()
        self._downloads: set[str] = set()
        self._stale: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        for name, handler in (
            ("Network.requestWillBeSent", self._request_sent),
            ("Network.responseReceived", self._response_received),
            ("Network.loadingFinished", self._request_finished),
            ("Network.loadingFailed", self._request_finished),
            ("Page.frameRequestedNavigation", self._navigation_requested),
            ("Page.frameStartedLoading", self._frame_loading),
            ("Page.frameStoppedLoading", self._frame_stopped),
            ("Page.frameDetached", self._frame_stopped),
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
        """Wait only for what begins after now."""
        self._stale = self._requests.keys() | self._downloads
        self._update()

    def end(self) -> None:
        """Forget what is in flight: the page has closed, and the browser will not report its end."""
        self._requests, self._answers, self._streams, self._frames, self._downloads = {}, {}, {}, set(), set()
        self._update()

    async def idle(self) -> None:
        """Wait until nothing that began after the mark is in flight, except bodies of answers to `fetch`."""
        await self._idle.wait()

    def unfinished_reads(self, unread: list[str]) -> set[str]:
        """Return the requests since the mark whose body is arriving and being read.

        `unread`: addresses of answers that the page does not read.
        """
        left = Counter(unread)
        read = set[str]()
        for id, url in self._answers.items():
            if left[url]:
                left[url] -= 1
            elif id not in self._stale:
                read.add(id)
        return read

    async def any_ended(self, requests: set[str]) -> None:
        """Wait until one of the requests has ended."""
        while requests <= self._requests.keys():
            self._ended.clear()
            await self._ended.wait()

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is in flight that `idle` waits for."""
        return self._idle.is_set()

    @property
    def streaming(self) -> bool:
        """Return whether a response is arriving, whether or not it is waited for."""
        return bool(self._requests or self._streams)

    @property
    def navigating(self) -> bool:
        """Return whether a frame is loading a document."""
        return bool(self._frames)

    def _update(self) -> None:
        self._ended.set()
        if self._frames or ((self._requests.keys() - self._answers.keys()) | self._downloads) - self._stale:
            self._idle.clear()
        else:
            self._idle.set()

    def _request_sent(self, event: Event) -> None:
        if event.get("type") not in _ENDLESS:
            self.started += 1
            self._requests[event["requestId"]] = event.get("loaderId", "")
            self._update()
        elif event["type"] in ("EventSource", "Media"):
            self._streams[event["requestId"]] = event.get("loaderId", "")

    def _response_received(self, event: Event) -> None:
        if event.get("type") == "Fetch" and event["requestId"] in self._requests:
            self._answers[event["requestId"]] = event["response"]["url"]
            self._update()

    def _request_finished(self, event: Event) -> None:
        self._requests.pop(event["requestId"], None)
        self._answers.pop(event["requestId"], None)
        self._streams.pop(event["requestId"], None)
        self._update()

    def _navigation_requested(self, event: Event) -> None:
        if event.get("disposition") == "currentTab" and not event.get("url", "").startswith("javascript:"):
            self._frame_loading(event)

    def _frame_loading(self, event: Event) -> None:
        self.started += 1
        self._frames.add(event["frameId"])
        self._update()

    def _frame_stopped(self, event: Event) -> None:
        self._frames.discard(event["frameId"])
        self._update()

    def _download_begun(self, event: Event) -> None:
        self.started += 1
        self._downloads.add(event["guid"])
        self._update()

    def _download_progress(self, event: Event) -> None:
        if event["state"] != "inProgress":
            self._downloads.discard(event["guid"])
            self._update()

    def _dialog_opening(self, event: Event) -> None:
        self._leaving = event["type"] == "beforeunload"

    def _dialog_closed(self, event: Event) -> None:
        """Forget loading frames where the page was not left: the browser does not report that the load was given up."""
        if self._leaving and not event["result"]:
            self._frames.clear()
            self._update()
        self._leaving = False

    def _frame_navigated(self, event: Event) -> None:
        """Forget requests of the document that was left: they never finish."""
        frame = event["frame"]
        if "parentId" not in frame:
            self.documents += 1
            self._requests, self._streams = (
                {id: loader for id, loader in requests.items() if loader == frame["loaderId"]}
                for requests in (self._requests, self._streams)
            )
            self._answers = {id: url for id, url in self._answers.items() if id in self._requests}
        self._update()
