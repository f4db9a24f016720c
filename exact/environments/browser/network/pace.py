"""Rate of requests to a site by origin: requests a minute, and pages that one tree opens. Environments opened together share it.

What a page may do at once that takes time of the browser which others share.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Generic, TypeVar

MINUTE = 60.0
"""Seconds in which requests are counted."""
_A_TURN = 8
"""Items of one context that are begun with before others have their turn."""
T = TypeVar("T")


class Allowance:
    """A number of things that may be done at once, which grows again with time."""

    def __init__(self, most: int, a_second: float) -> None:
        """Allow `most` things at once, and `a_second` more in each second."""
        self._most, self._a_second, self._left, self._at = float(most), a_second, float(most), 0.0

    def take(self, number: int = 1) -> bool:
        """Count some things. Return False if they are too many."""
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._a_second)
        self._at = now
        if self._left < number:
            return False
        self._left -= number
        return True


class Turns(Generic[T]):
    """Items of several contexts. In each turn of the event loop a few of every context are begun with, the others wait."""

    def __init__(self, begin: Callable[[T], None]) -> None:
        """Take the function that begins with an item."""
        self._begin = begin
        self._waiting: dict[str, deque[T]] = {}
        """Items that wait, by contexts that have begun with some in this turn."""
        self._begun = Counter[str]()
        """Items that were begun with in this turn."""

    @property
    def waiting(self) -> tuple[T, ...]:
        """Items that wait."""
        return tuple(item for items in self._waiting.values() for item in items)

    def add(self, context: str, item: T) -> int:
        """Begin with an item in the turn of its context. Return how many of the context wait."""
        if context not in self._waiting:
            self._waiting[context] = deque()
            asyncio.get_running_loop().call_soon(self._next, context)
        self._waiting[context].append(item)
        self._begin_some(context)
        return len(self._waiting[context])

    def drop(self, context: str) -> None:
        """Forget the items of a context that wait."""
        if context in self._waiting:
            self._waiting[context].clear()

    def clear(self) -> None:
        """Forget all items that wait."""
        for context in self._waiting:
            self.drop(context)

    def _next(self, context: str) -> None:
        self._begun[context] = 0
        self._begin_some(context)
        if self._begun[context]:
            asyncio.get_running_loop().call_soon(self._next, context)
        else:
            del self._waiting[context], self._begun[context]

    def _begin_some(self, context: str) -> None:
        items = self._waiting[context]
        while items and self._begun[context] < _A_TURN:
            self._begun[context] += 1
            self._begin(items.popleft())


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
