"""The window of an environment: its open tabs, and pages that are being opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure

_CLOSING = 2000
"""Milliseconds within which Playwright reports that a page is closed which no longer answers."""


class BrowserWindow:
    """Open tabs, ordered by when they were last in front."""

    def __init__(self, ended: Callable[[str], None] = lambda why: None) -> None:
        """Make a window without tabs. `ended` is called with the reason when the pages are ended."""
        self._ended, self.flooded = ended, ""
        """The reason why the pages were ended; empty if they were not."""
        self.tabs: list[Tab] = []
        """The present tab is the last; the one that was in front before it is the last but one."""
        self.opened = 0
        """Number of tabs opened in the episode."""
        self._opening: set[asyncio.Task[None]] = set()

    @property
    def present(self) -> Tab:
        """The tab in front. Raises EnvironmentFailure if none is open."""
        if not self.tabs:
            raise EnvironmentFailure("no page is open: reset first")
        return self.tabs[-1]

    @property
    def others(self) -> list[Tab]:
        """The tabs that are not in front, in the order in which they were opened."""
        return sorted(self.tabs[:-1], key=lambda tab: tab.index)

    @property
    def is_opening(self) -> bool:
        """Return whether a page is being made a tab."""
        return bool(self._opening)

    def add(self, tab: Tab) -> None:
        """Put a tab in front, unless its page has closed meanwhile."""
        if not tab.page.is_closed():
            self.tabs.append(tab)
            if self.flooded:
                tab.crash()
            tab.page.on("close", lambda _: self._closed(tab))

    def _closed(self, tab: Tab) -> None:
        tab.traffic.end()
        if tab in self.tabs:
            self.tabs.remove(tab)

    async def recovers_from(self, tab: Tab, error: Exception) -> bool:
        """Return whether an error only means that this tab closed and another one is in front now."""
        from playwright.async_api import Error

        if not tab.is_closing_error(error) or self.tabs in ([], [tab]):
            return False
        if tab in self.tabs:
            with suppress(Error):  # not reported in time: the tab is not closed but broken
                await tab.page.wait_for_event("close", timeout=_CLOSING)
        return tab not in self.tabs

    async def focus(self, tab: Tab) -> None:
        """Bring a tab to the front."""
        self.tabs.remove(tab)
        self.tabs.append(tab)
        await tab.page.bring_to_front()

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        """Run `opening`, which makes a new page a tab, in the background."""
        task = asyncio.ensure_future(opening)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def all_open(self) -> None:
        """Wait until all pages opened so far are tabs."""
        if self._opening:
            await asyncio.wait(self._opening)  # not `gather`, which would end them if the wait is given up

    def has(self, frame: str) -> bool:
        """Return whether a tab is known to have the frame with an id."""
        return any(tab.has(frame) for tab in self.tabs)

    def tab_of(self, frame: str) -> str:
        """Return the main frame of a frame's tab; empty if no tab is known to have the frame."""
        return next((tab.main_frame for tab in self.tabs if tab.has(frame)), "")

    async def ask(self) -> None:
        """Ask the browser for the frames of all tabs. Those of a tab are known as soon as it answers."""
        await asyncio.gather(*(tab.learn_frames() for tab in self.tabs))

    def unanswered(self) -> str:
        """Return an address that did not answer in time, and forget it; empty if there is none."""
        found = ""
        for tab in self.tabs:
            found, tab.unanswered = tab.unanswered or found, ""
        return found

    def end(self, why: str) -> None:
        """End the renderers of all tabs, present and future: a page floods the browser, which others share. `why` says by what."""
        if not self.flooded:
            self.flooded = f"the page floods the browser, so it was ended: {why}"
            for tab in self.tabs:
                tab.crash()
            self._ended(self.flooded)

    def leave(self) -> None:
        """Hear no more of the tabs: their browser context is about to close."""
        for tab in self.tabs:
            tab.leave()

    def clear(self) -> None:
        """Forget all tabs: their browser context is gone."""
        self.tabs, self.opened, self.flooded = [], 0, ""
        for task in self._opening:
            task.cancel()
