"""The tabs of an environment: which is the present one, and which are still being opened."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure

_CLOSING = 2000
"""Milliseconds at most between a page that can be asked nothing and the word that it is closed."""


class Window:
    """Tabs in the order in which they were last in front."""

    def __init__(self) -> None:
        self.tabs: list[Tab] = []
        """The present one last, before it the one that was it before."""
        self.opened = 0
        """How many there have been in the episode."""
        self._opening: set[asyncio.Task[None]] = set()

    @property
    def present(self) -> Tab:
        """Raises EnvironmentFailure where none is open."""
        if not self.tabs:
            raise EnvironmentFailure("no page is open: reset first")
        return self.tabs[-1]

    @property
    def others(self) -> list[Tab]:
        """In the order in which they were opened."""
        return sorted(self.tabs[:-1], key=lambda tab: tab.index)

    @property
    def is_opening(self) -> bool:
        return bool(self._opening)

    def add(self, tab: Tab) -> None:
        """A tab that was opened, or came back: the present one from now on, unless it has closed again."""
        if not tab.page.is_closed():
            self.tabs.append(tab)
            tab.page.on("close", lambda _: self._closed(tab))

    def _closed(self, tab: Tab) -> None:
        tab.traffic.end()
        if tab in self.tabs:
            self.tabs.remove(tab)

    async def recovers_from(self, tab: Tab, error: Exception) -> bool:
        """Whether an error only says that a tab closes and another is left, which is the present one then."""
        from playwright.async_api import Error

        if not tab.is_closing_error(error) or self.tabs in ([], [tab]):
            return False
        if tab in self.tabs:
            with suppress(Error):  # it is not said in time: the tab is not closed but lost
                await tab.page.wait_for_event("close", timeout=_CLOSING)
        return tab not in self.tabs

    async def focus(self, tab: Tab) -> None:
        """Make a tab the present one."""
        self.tabs.remove(tab)
        self.tabs.append(tab)
        await tab.page.bring_to_front()

    def open(self, opening: Coroutine[Any, Any, None]) -> None:
        """Somebody sees to a page that opened."""
        task = asyncio.ensure_future(opening)
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def all_open(self) -> None:
        """Return when all pages are seen to that had opened by now."""
        await asyncio.gather(*self._opening)

    def has(self, frame: str) -> bool:
        """Whether a tab is known to have a frame, by its id."""
        return any(frame in tab.frames for tab in self.tabs)

    async def ask(self) -> None:
        """Ask the browser for the frames of all tabs: those of a tab are known as soon as it answers."""
        await asyncio.gather(*(tab.learn_frames() for tab in self.tabs))

    def unanswered(self) -> str:
        """An address that did not answer in time, told once; empty if there is none."""
        found = ""
        for tab in self.tabs:
            found, tab.unanswered = tab.unanswered or found, ""
        return found

    def clear(self) -> None:
        """The tabs went with their browser context."""
        self.tabs = []
        for task in self._opening:
            task.cancel()
