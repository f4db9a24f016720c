"""A context that does not close in time loses its renderers."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any, cast

import pytest

from exact.environments.browser import Browser


class Stuck:
    """A browser context with one page, which closes once the page's renderer has crashed; its own session with the page."""

    def __init__(self) -> None:
        self.crashed = asyncio.Event()
        self.pages = [self]

    async def close(self) -> None:
        await self.crashed.wait()

    async def send(self, method: str, params: Any = None) -> None:
        assert method == "Page.crash"
        self.crashed.set()


async def test_a_context_that_does_not_close_in_time_loses_its_renderers(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("exact.environments.browser.launch.browser")
    monkeypatch.setattr(module, "_CLOSE_AT_LEAST", 0.01)
    monkeypatch.setattr(module, "SharedClipboard", lambda playwright: None)
    browser, context = Browser(*cast(Any, (None, None, None, None))), Stuck()
    browser._closes.clear()
    browser._closes.append(0.001)
    monkeypatch.setattr(browser, "attach", lambda page: asyncio.sleep(0, page))
    await asyncio.wait_for(browser.close_context(cast(Any, context)), 5)
    assert context.crashed.is_set() and len(browser._closes) == 2
