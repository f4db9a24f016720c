"""A context that does not close in time loses its renderers."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any, cast

import pytest
from pytest_httpserver import HTTPServer

from exact.environments.browser import Browser, BrowserFactory, PageSetup, launch
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.pages import do, find


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


async def test_a_page_is_ended_by_the_session_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to another attachment would come after all that a flooding page has sent."""
    module, sent = import_module("exact.environments.browser.launch.browser"), list[str]()
    monkeypatch.setattr(module, "SharedClipboard", lambda playwright: None)

    class Session:
        async def send(self, method: str, params: Any = None) -> None:
            sent.append(method)

    class Page(Session):
        @property
        def context(self) -> Page:
            return self

        async def new_cdp_session(self, page: Page) -> Session:
            sent.append("attach")
            return Session()

    browser, page = Browser(*cast(Any, (None, None, None, None))), Page()
    await browser.attach(cast(Any, page))
    await browser._crash(cast(Any, page))
    assert sent == ["attach", "Page.crash"]


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


FRAME = "const f = document.createElement('iframe'); document.body.append(f); f.contentWindow.setInterval('{}(1)', 1)"


@pytest.mark.parametrize("kind", ["alert", "prompt"])
async def test_a_context_closes_with_the_dialog_of_a_frame_and_the_browser_stays(
    executable: str, httpserver: HTTPServer, kind: str
) -> None:
    """Chromium 156 ended as a whole, with all environments in it."""
    page = f'<button onclick="{FRAME.format(kind)}">Go</button>'
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    async with launch(CONFIG) as browser:
        factory = BrowserFactory(browser, PageSetup(), CONFIG, isolated=False)
        async with factory.open(simulation=True) as environment:
            seen = await environment.reset(Task(id="closing/dialog", instruction="", start=httpserver.url_for("/")))
            seen = (await do(environment, f"click [{find(seen, 'Go').id}]")).observation or seen
            assert seen.elements[0].role == "alertdialog"
        async with factory.open(simulation=True) as environment:
            assert await environment.reset(Task(id="closing/after", instruction="", start=httpserver.url_for("/")))
