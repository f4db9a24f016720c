"""Timeouts of what is asked of a page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

PAGE_TIMEOUT = 30.0
"""Seconds, beyond the settling time, after which a page that does not answer counts as broken."""


class Timeouts:
    """The timeout of the present call of one environment, which can be restarted, suspended or ended early."""

    def __init__(self, settling: Callable[[], float]) -> None:
        """Take `settling`, which returns the seconds that a page may take to become quiet."""
        self._settling = settling
        self._suspended = 0
        """Number of blocks that suspend the timeout now."""
        self._limit: asyncio.Timeout | None = None
        """The timeout of the present call; None outside one."""
        self.broken = ""
        """The reason why the page will never answer; empty while it may."""

    @property
    def seconds(self) -> float:
        """Seconds within which a page has to answer."""
        return PAGE_TIMEOUT + 2 * self._settling()

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Limit the time of the block. Raises TimeoutError with the reason why there was no answer."""
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
        """Restart the timeout: another page is asked now."""
        if self._limit is not None and not self._limit.expired() and not self.broken and not self._suspended:
            self._limit.reschedule(self._deadline)

    def fail(self, why: str) -> None:
        """End the present call at once: the page is broken. `why` is the reason."""
        self.broken = why
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(asyncio.get_running_loop().time())

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Suspend the timeout while something runs that has its own, such as a hook. It restarts after the last such block."""
        limit = self._limit
        self._suspended += 1
        if limit is not None and not limit.expired():
            limit.reschedule(None)
        try:
            yield
        finally:
            self._suspended -= 1
            if limit is not None and limit.when() is None and not self._suspended:  # the page has not failed meanwhile
                limit.reschedule(self._deadline)

    @property
    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self.seconds
