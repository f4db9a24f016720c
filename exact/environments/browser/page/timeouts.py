"""How long what is asked of a page may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

PAGE_TIMEOUT = 30.0
"""Seconds beyond the settling after which a page that does not answer is broken."""


class Timeouts:
    """That of one environment."""

    def __init__(self, settling: Callable[[], float]) -> None:
        """`settling`: seconds in which a page becomes quiet, or is left as it is."""
        self._settling = settling
        self._limit: asyncio.Timeout | None = None
        """Of what is being asked now."""
        self.broken = ""
        """Why no answer will come; empty while one may."""

    @property
    def seconds(self) -> float:
        """In which a page has to answer."""
        return PAGE_TIMEOUT + 2 * self._settling()

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Ask something of the environment. Raises TimeoutError, which says why there was no answer."""
        seconds = self.seconds
        try:
            async with asyncio.timeout(seconds) as self._limit:
                yield
        except TimeoutError as error:
            why = self.broken or f"the page did not answer for {seconds:g} s: reset, or raise browser.settle_seconds"
            raise TimeoutError(why) from error
        finally:
            self._limit = None

    def renew(self) -> None:
        """Another page is asked: what went before does not count against it."""
        if self._limit is not None and not self._limit.expired() and not self.broken:
            self._limit.reschedule(self._later)

    def fail(self, why: str) -> None:
        """It is broken: whoever waits for it need not wait any longer."""
        self.broken = why
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """While something runs that has limits of its own, as hooks do, that of the page does not count; it begins anew afterwards."""
        limit = self._limit
        if limit is not None and not limit.expired():
            limit.reschedule(None)
        try:
            yield
        finally:
            if limit is not None and limit.when() is None:  # the page did not break meanwhile
                limit.reschedule(self._later)

    @property
    def _later(self) -> float:
        return asyncio.get_running_loop().time() + self.seconds
