"""The tabs of a world: which is the present one, and which are still being opened."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from exact.environments.browser.tab import Tab
from exact.errors import EnvironmentError_


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
        """Raises EnvironmentError_ where none is open."""
        if not self.tabs:
            raise EnvironmentError_("no page is open: reset first")
        return self.tabs[-1]

    @property
    def others(self) -> list[Tab]:
        """In the order in which they were opened."""
        return sorted(self.tabs[:-1], key=lambda tab: tab.index)

    @property
    def is_opening(self) -> bool:
        return bool(self._opening)

    def add(self, tab: Tab) -> None:
        """A tab that was opened, or came back: the present one from now on."""
        self.tabs.append(tab)
        tab.page.on("close", lambda _: self.tabs.remove(tab) if tab in self.tabs else None)

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

    async def frames(self) -> set[str]:
        """Ids of the frames of all tabs, asked of the browser."""
        found: set[str] = set()
        for tab in list(self.tabs):
            found |= await tab.frame_ids()
        return found

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
