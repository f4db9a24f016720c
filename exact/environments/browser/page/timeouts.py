"""Timeouts of the calls to a page.

A paused page clock that runs for a fixed time after each action, so that animations and timers are deterministic.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from exact.environments.browser.page.cdp import script_call
from exact.environments.browser.page.tab import Tab
from exact.slowness import Limit

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext


PAGE_TIMEOUT = 30.0
"""Seconds, beyond the settling time, after which a page that does not answer counts as broken."""


class Timeouts:
    """The timeout of the present call of one environment, which can be restarted, suspended or ended early."""

    def __init__(self, settling: Callable[[], float]) -> None:
        """Take `settling`, which returns the seconds that a page may take to become quiet."""
        self._settling = settling
        self._suspended = 0
        """Number of blocks that suspend the timeout now."""
        self._limit: Limit | None = None
        """The timeout of the present call; None outside one."""
        self.broken = ""
        """The reason why the page will never answer; empty while it may."""

    @property
    def seconds(self) -> float:
        """Seconds within which a page has to answer."""
        return PAGE_TIMEOUT + 2 * self._settling()

    @asynccontextmanager
    async def limited(self) -> AsyncIterator[None]:
        """Limit the time of the block. Raises TimeoutError with the reason for the missing answer."""
        seconds = self.seconds
        try:
            async with Limit(seconds) as self._limit:
                yield
        except TimeoutError as error:
            why = self.broken or f"the page did not answer for {seconds:g} s: reset, or raise browser.settle_seconds"
            raise TimeoutError(why) from error
        finally:
            self._limit = None

    def renew(self) -> None:
        """Restart the timeout: the next call is to another page."""
        if self._limit is not None and not self.broken and not self._suspended:
            self._limit.set(self.seconds)

    def fail(self, why: str) -> None:
        """End the present call at once: the page is broken. `why` gives the reason, the first one if there are several."""
        if self.broken:
            return  # the present call may begin with another page
        self.broken = why
        if self._limit is not None:
            self._limit.set(0.0)

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Suspend the timeout while something runs that has its own, such as a hook. It restarts after the last such block."""
        limit = self._limit
        self._suspended += 1
        if limit is not None:
            limit.set(math.inf)
        try:
            yield
        finally:
            self._suspended -= 1
            if limit is not None and limit.left == math.inf and not self._suspended:  # the page has not failed meanwhile
                limit.set(self.seconds)


START = 1_767_258_000_000
"""Start of the clock in milliseconds since 1970: 2026-01-01T09:00:00Z."""
_FRAME, _GRACE = 16, 0.1
"""Milliseconds by which the clock advances while a script waits for it, and seconds after which a script counts as waiting."""

T = TypeVar("T")


class Clock:
    """The clock of one browser context.

    Playwright's clock drives Date, timers and animation frames of all its pages; seek_animations.js drives endless animations.
    """

    def __init__(self, step: int) -> None:
        """Create a clock that runs for `step` milliseconds after each action."""
        self._step = step
        self.now = START
        """Milliseconds since 1970."""
        self._context: BrowserContext | None = None

    async def pause(self, context: BrowserContext, now: int = START) -> None:
        """Pause the clock in all pages of a context, present and future, at `now`, milliseconds since 1970. Pages keep their timers."""
        self._context, self.now = context, now
        await context.clock.pause_at(self.now / 1000)  # not `install`, which would let it run for an unknown time first

    async def run(self, tabs: Iterable[Tab]) -> None:
        """Advance the clock by a step, in the frames of some tabs."""
        await self._advance(self._step)
        await asyncio.gather(*(self._seek(tab, frame) for tab in tabs for frame in list(tab.frames)))

    async def run_while(self, script: Awaitable[T]) -> T:
        """Return the result of a script that may wait for the clock, advancing it frame by frame until the script is done."""
        task = asyncio.ensure_future(script)
        try:
            while not (await asyncio.wait({task}, timeout=_GRACE))[0]:
                await self._advance(_FRAME)
            return task.result()
        finally:
            task.cancel()

    async def _advance(self, milliseconds: int) -> None:
        assert self._context is not None
        await self._context.clock.run_for(milliseconds)
        self.now += milliseconds

    async def _seek(self, tab: Tab, frame: str) -> None:
        from playwright.async_api import Error

        options: dict[str, Any] = {"expression": script_call("page/seek_animations", self._step)}
        try:
            await tab.cdp.send("Runtime.evaluate", {**options, "contextId": await tab.execution_context(frame)})
        except Error as error:
            if not (tab.is_navigation_error(error) or tab.is_closing_error(error)):
                raise
