"""Rate of requests to a site by origin: requests a minute, and pages that one tree opens. Environments opened together share it."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque

MINUTE = 60.0
"""Seconds in which requests are counted."""


class Pace:
    """The requests and pages of one task's environments."""

    def __init__(self, *, requests: int | None = None, pages: int | None = None) -> None:
        """Allow `requests` a minute and `pages` of simulations an attempt, each by origin. None: any number."""
        self.pages_allowed, self._requests = pages, requests
        self._sent: defaultdict[str, deque[float]] = defaultdict(deque)
        """Times of the requests of the last minute."""
        self._pages = Counter[str]()

    @property
    def is_limited(self) -> bool:
        """Whether requests may have to wait."""
        return self._requests is not None

    def begin(self) -> None:
        """Count the pages of another attempt."""
        self._pages.clear()

    async def turn(self, origin: str) -> None:
        """Wait until one more request may be sent to an origin, and count it."""
        if self._requests is None:
            return
        clock, sent = asyncio.get_running_loop().time, self._sent[origin]
        while True:
            now = clock()
            while sent and sent[0] <= now - MINUTE:
                sent.popleft()
            if len(sent) < self._requests:
                sent.append(now)
                return
            await asyncio.sleep(sent[0] + MINUTE - now)

    def opens_page(self, origin: str) -> bool:
        """Count a page that a simulation opens. Return False if no more may be opened."""
        if self.pages_allowed is not None and self._pages[origin] >= self.pages_allowed:
            return False
        self._pages[origin] += 1
        return True
