"""Bodies that are too large, or that become much larger when they are decompressed."""

from __future__ import annotations

import asyncio
import gzip
import sys
import time
from typing import Any

import pytest
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.environments.browser.launch import pipe
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")
MEBIBYTE = 1 << 20
SMALL = BrowserConfig(screenshots=False, width=600, height=400, document_bytes=MEBIBYTE)


def bomb(size: int) -> bytes:
    return gzip.compress(b"<!doctype html><p>" + b"a" * size)


async def act(environment: BrowserEnvironment, name: str) -> str:
    step = await environment.step(environment.actions.parse(f"click [{find(environment.observation, name).id}]"))
    return step.observation.text if step.observation else ""


@pytest.fixture
def home(httpserver: HTTPServer) -> Task:
    """A page with a link to a document of 100 MiB in 100 KB, a button that puts it into a frame, and a counter."""
    page = "<a href=/bomb>Bomb</a><button onclick='this.textContent = ++n'>0</button><script>n = 0</script><a href=/plain>Plain</a>"
    page += "<button onclick=\"document.body.append(Object.assign(document.createElement('iframe'), {src: '/bomb'}))\">Frame</button>"
    zipped: dict[str, Any] = {"content_type": "text/html", "headers": {"Content-Encoding": "gzip"}}
    httpserver.expect_request("/").respond_with_data(f"<!doctype html>{page}", content_type="text/html")
    httpserver.expect_request("/bomb").respond_with_data(bomb(100 * MEBIBYTE), **zipped)
    httpserver.expect_request("/plain").respond_with_data(b"<p>" + b"b" * (2 * MEBIBYTE), content_type="text/html")
    httpserver.expect_request("/fits").respond_with_data(bomb(MEBIBYTE // 2), **zipped)
    return Task(id="bounds/home", instruction="", start=httpserver.url_for("/"))


@pytest.mark.parametrize("link", ["Bomb", "Plain"])
async def test_a_document_that_is_too_large_is_a_refused_action_and_the_page_stays(browser: Browser, home: Task, link: str) -> None:
    kind = BrowserFactory(browser, PageSetup(), SMALL, isolated=False)
    async with kind.open(simulation=False) as environment, kind.open(simulation=False) as neighbour:
        await environment.reset(home)
        await neighbour.reset(home)
        began = time.monotonic()
        with pytest.raises(ActionError, match=r"was not opened: it has more than the 1,048,576 bytes that browser\.document_bytes allows"):
            await act(environment, link)
        assert time.monotonic() - began < 10
        assert 'button "1"' in await act(neighbour, "0")
        assert 'button "1"' in await act(environment, "0")
        began = time.monotonic()
    assert time.monotonic() - began < 10


async def test_a_bomb_in_a_frame_is_blocked_and_the_step_goes_on(browser: Browser, home: Task) -> None:
    async with BrowserFactory(browser, PageSetup(), SMALL, isolated=False).open(simulation=False) as environment:
        await environment.reset(home)
        step = await environment.step(environment.actions.parse(f"click [{find(environment.observation, 'Frame').id}]"))
        assert [effect.kind for effect in step.effects] == ["blocked"]
        assert 'button "1"' in await act(environment, "0")


async def test_a_start_page_that_is_too_large_fails_with_the_way_out(browser: Browser, home: Task) -> None:
    start = Task(id="bounds/bomb", instruction="", start=f"{home.start}bomb")
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=True) as environment:
        with pytest.raises(EnvironmentFailure, match=r"the start page .*/bomb was not opened: .*browser\.document_bytes allows"):
            async with asyncio.timeout(20):
                await environment.reset(start)


async def test_a_document_within_the_limit_is_shown_whole(browser: Browser, home: Task) -> None:
    start = Task(id="bounds/fits", instruction="", start=f"{home.start}fits")
    async with BrowserFactory(browser, PageSetup(), SMALL, isolated=False).open(simulation=True) as environment:
        await environment.reset(start)
        assert await environment.page.evaluate("document.body.textContent.length") == MEBIBYTE // 2


@pytest.mark.skipif(sys.platform != "linux", reason="messages of a browser are bounded where its pipe is shared: on Linux")
@pytest.mark.parametrize("way", ["fetch('/w', {method: 'POST', body: 'x'.repeat(4e5)})", "document.forms[0].submit()"])
async def test_a_request_that_is_too_large_to_be_read_is_refused_at_once_and_said(
    monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer, way: str
) -> None:
    monkeypatch.setattr(pipe, "MOST_BYTES", 300_000)
    page = f"<button onclick=\"{way}\">Send</button><button onclick='this.textContent = ++n'>0</button><script>n = 0</script>"
    page += "<form method=post action=/w></form><script>document.forms[0].onformdata = e => e.formData.set('a', 'x'.repeat(4e5))</script>"
    httpserver.expect_request("/").respond_with_data(f"<!doctype html>{page}", content_type="text/html")
    task = Task(id="bounds/send", instruction="", start=httpserver.url_for("/"))
    async with launch(CONFIG) as small, BrowserFactory(small, PageSetup(), CONFIG, isolated=False).open(simulation=False) as environment:
        await environment.reset(task)
        async with asyncio.timeout(20):
            step = await environment.step(environment.actions.parse(f"click [{find(environment.observation, 'Send').id}]"))
        assert [(each.kind, each.method) for each in step.effects] == [("blocked", "POST")] and "too large" in step.effects[0].detail
        assert 'button "1"' in await act(environment, "0")
    assert not [each for each, _ in httpserver.log if each.path == "/w"]
