"""Evaluating an episode on its pages, which cannot keep the evaluator waiting without end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from exact.environments.browser.page.tab import Tab
from exact.environments.browser.tabs import Tabs
from exact.errors import EnvironmentFailure

T = TypeVar("T")
EVALUATION_SECONDS = 600.0
"""Seconds that an evaluator may take: it may open pages, and ask models with retries."""
_EVERY = 0.25
"""Seconds between two looks at the pages."""
_END = 5.0
"""Seconds that an evaluator has to end once it is cancelled."""


async def evaluate_on(tabs: Tabs, evaluation: Awaitable[T]) -> T:
    """Return the result of an evaluator that works on the tabs of an environment, or on others that it opens beside them.

    Dialogs are answered meanwhile: pages are left that ask before they are, and nothing is confirmed on behalf of the agent. Raises
    EnvironmentFailure where a page does not answer, or the evaluator does not end.
    """
    loop = asyncio.get_running_loop()
    work, end, watches = asyncio.ensure_future(evaluation), loop.time() + EVALUATION_SECONDS, dict[Tab, _Watch]()
    try:
        with tabs.dialogs.leaving():
            await tabs.dialogs.answer_open()
            while not (await asyncio.wait({work}, timeout=_EVERY))[0]:
                if loop.time() > end:
                    raise EnvironmentFailure(f"evaluate: no score came within {EVALUATION_SECONDS:g} s")
                for tab in tabs.window.tabs:
                    watches.setdefault(tab, _Watch(tab)).check(tabs.timeouts.seconds)
            return work.result()
    finally:
        work.cancel()
        for watch in watches.values():
            watch.end()
        await asyncio.wait({work}, timeout=_END)


class _Watch:
    """The watch over one tab while an evaluator works."""

    def __init__(self, tab: Tab) -> None:
        self._tab = tab
        self._asked = asyncio.get_running_loop().time()
        self._look = asyncio.ensure_future(self._ask())

    def check(self, limit: float) -> None:
        """Ask the tab again where it has answered. Raise EnvironmentFailure where it has not answered for `limit` seconds."""
        now = asyncio.get_running_loop().time()
        if self._look.done():
            self._asked = now
            self._look = asyncio.ensure_future(self._ask())
        elif now - self._asked > limit:
            raise EnvironmentFailure(f"evaluate: the page {self._tab.page.url} did not answer for {limit:g} s")

    def end(self) -> None:
        """Ask no more."""
        self._look.cancel()

    async def _ask(self) -> None:
        from playwright.async_api import Error

        try:
            await self._tab.evaluate("0")
        except (Error, EnvironmentFailure) as error:
            self._tab.is_navigation_error(error)  # or the evaluator has closed the page
