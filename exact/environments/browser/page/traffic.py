"""What a page has in flight: requests and navigations, from the events of its CDP session."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Event = dict[str, Any]
_ENDLESS = ("EventSource", "WebSocket", "Ping", "CSPViolationReport", "Media", "Prefetch", "Preflight")
"""Kinds of requests that nobody waits for."""


class Traffic:
    """Requests in flight, frames that load, and navigations that were asked for but have not begun."""

    def __init__(self, cdp: Cdp) -> None:
        self.started = 0
        """How many requests and navigations have begun so far."""
        self.documents = 0
        """How often the main frame got a new document."""
        self._requests: dict[str, str] = {}
        self._answers: dict[str, str] = {}
        """Of requests by `fetch` whose head has come, but not the end of their body: the address."""
        self._ended = asyncio.Event()
        self._leaving = False
        self._streams: dict[str, str] = {}
        self._frames: set[str] = set()
        self._downloads: set[str] = set()
        self._stale: set[str] = set()
        self._idle = asyncio.Event()
        self._idle.set()
        for name, handler in (
            ("Network.requestWillBeSent", self._sent),
            ("Network.responseReceived", self._answered),
            ("Network.loadingFinished", self._finished),
            ("Network.loadingFailed", self._finished),
            ("Page.frameRequestedNavigation", self._requested),
            ("Page.frameStartedLoading", self._loading),
            ("Page.frameStoppedLoading", self._stopped),
            ("Page.frameDetached", self._stopped),
            ("Page.frameNavigated", self._navigated),
            ("Page.navigatedWithinDocument", self._stopped),
            ("Page.downloadWillBegin", self._stopped),
            ("Page.downloadWillBegin", self._downloading),
            ("Page.downloadProgress", self._downloaded),
            ("Page.javascriptDialogOpening", self._asking),
            ("Page.javascriptDialogClosed", self._told),
        ):
            cdp.on(name, handler)

    def mark(self) -> None:
        """From here on only what begins after now is waited for."""
        self._stale = self._requests.keys() | self._downloads
        self._weigh()

    def end(self) -> None:
        """The page has closed: nobody will tell what becomes of what is in flight."""
        self._requests, self._answers, self._streams, self._frames, self._downloads = {}, {}, {}, set(), set()
        self._weigh()

    async def idle(self) -> None:
        """Return when nothing that began after the mark is in flight, save the bodies of answers to `fetch`."""
        await self._idle.wait()

    def read(self, unread: list[str]) -> set[str]:
        """Requests that began after the mark whose body is on its way, and is read. `unread`: addresses of answers that are not."""
        left = Counter(unread)
        read = set[str]()
        for id, url in self._answers.items():
            if left[url]:
                left[url] -= 1
            elif id not in self._stale:
                read.add(id)
        return read

    async def ends(self, requests: set[str]) -> None:
        """Return when one of some requests has come to its end."""
        while requests <= self._requests.keys():
            self._ended.clear()
            await self._ended.wait()

    @property
    def is_idle(self) -> bool:
        return self._idle.is_set()

    @property
    def streaming(self) -> bool:
        """Whether a response has not come to its end, waited for or not."""
        return bool(self._requests or self._streams)

    @property
    def navigating(self) -> bool:
        """Whether a frame is loading a document."""
        return bool(self._frames)

    def _weigh(self) -> None:
        self._ended.set()
        if self._frames or ((self._requests.keys() - self._answers.keys()) | self._downloads) - self._stale:
            self._idle.clear()
        else:
            self._idle.set()

    def _sent(self, event: Event) -> None:
        if event.get("type") not in _ENDLESS:
            self.started += 1
            self._requests[event["requestId"]] = event.get("loaderId", "")
            self._weigh()
        elif event["type"] in ("EventSource", "Media"):
            self._streams[event["requestId"]] = event.get("loaderId", "")

    def _answered(self, event: Event) -> None:
        if event.get("type") == "Fetch" and event["requestId"] in self._requests:
            self._answers[event["requestId"]] = event["response"]["url"]
            self._weigh()

    def _finished(self, event: Event) -> None:
        self._requests.pop(event["requestId"], None)
        self._answers.pop(event["requestId"], None)
        self._streams.pop(event["requestId"], None)
        self._weigh()

    def _requested(self, event: Event) -> None:
        if event.get("disposition") == "currentTab" and not event.get("url", "").startswith("javascript:"):
            self._loading(event)

    def _loading(self, event: Event) -> None:
        self.started += 1
        self._frames.add(event["frameId"])
        self._weigh()

    def _stopped(self, event: Event) -> None:
        self._frames.discard(event["frameId"])
        self._weigh()

    def _downloading(self, event: Event) -> None:
        self.started += 1
        self._downloads.add(event["guid"])
        self._weigh()

    def _downloaded(self, event: Event) -> None:
        if event["state"] != "inProgress":
            self._downloads.discard(event["guid"])
            self._weigh()

    def _asking(self, event: Event) -> None:
        self._leaving = event["type"] == "beforeunload"

    def _told(self, event: Event) -> None:
        """A page that is not left loads nothing: nobody will tell what became of that."""
        if self._leaving and not event["result"]:
            self._frames.clear()
            self._weigh()
        self._leaving = False

    def _navigated(self, event: Event) -> None:
        """Requests of the document that was left never finish."""
        frame = event["frame"]
        if "parentId" not in frame:
            self.documents += 1
            self._requests, self._streams = (
                {id: loader for id, loader in kept.items() if loader == frame["loaderId"]} for kept in (self._requests, self._streams)
            )
            self._answers = {id: url for id, url in self._answers.items() if id in self._requests}
        self._weigh()
