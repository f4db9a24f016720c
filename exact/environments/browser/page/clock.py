"""A page's clock that stands still, and runs a fixed while after each action: what moves by itself then moves alike each time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from exact.environments.browser.page.script import script_call
from exact.environments.browser.page.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

START = 1_767_258_000_000
"""Milliseconds since 1970 at which pages begin: 2026-01-01T09:00:00Z."""
_FRAME, _GRACE = 16, 0.1
"""Milliseconds run for a script that waits for the clock, and seconds after which one is taken to do so."""

T = TypeVar("T")


class Clock:
    """Of one browser context: Date, timers and animation frames of all its pages, by Playwright's clock;
    endless animations by seek_animations.js."""

    def __init__(self, step: int) -> None:
        """`step`: milliseconds for which it runs after an action."""
        self._step = step
        self.now = START
        """Milliseconds since 1970."""
        self._context: BrowserContext | None = None

    async def hold(self, context: BrowserContext, now: int = START) -> None:
        """Hold the clock of a context, in pages that are open and in those to come. A page whose clock is held already keeps its timers."""
        self._context, self.now = context, now
        await context.clock.pause_at(self.now / 1000)  # without `install`, which would let it run until then, nobody knows how far

    async def run(self, tabs: Iterable[Tab]) -> None:
        """Let a step pass."""
        await self._pass(self._step)
        await asyncio.gather(*(self._seek(tab, frame) for tab in tabs for frame in list(tab.frames)))

    async def under(self, script: Awaitable[T]) -> T:
        """The result of a script that may wait for the clock: it runs frame by frame for as long as that takes."""
        task = asyncio.ensure_future(script)
        try:
            while not (await asyncio.wait({task}, timeout=_GRACE))[0]:
                await self._pass(_FRAME)
            return task.result()
        finally:
            task.cancel()

    async def _pass(self, milliseconds: int) -> None:
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
