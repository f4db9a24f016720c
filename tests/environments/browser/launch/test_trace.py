"""Traces hold no secret, and a folder that takes none is no reason to lose an environment."""

from __future__ import annotations

import asyncio
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig, LoginConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup, launch
from exact.environments.browser.launch.trace import PlaywrightTrace
from exact.environments.sites.site import Account, Outside
from exact.errors import UsageError
from exact.task import Task
from tests.environments.browser.pages import do, find

pytestmark = pytest.mark.asyncio(loop_scope="session")
WORD = 's3cret"wörd'
FORM = """<form method=post action=/ enctype={kind}><input name=word aria-label=Word><button>Send</button></form>
<button onclick="fetch('/', {method: 'POST', body: JSON.stringify([document.querySelector('input').value])})">Call</button>"""


@pytest.fixture(autouse=True)
def word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXACT_TEST_WORD", WORD)


def read(folder: Path) -> dict[str, bytes]:
    """Return the entries of the only trace."""
    (file,) = folder.iterdir()
    with zipfile.ZipFile(file) as trace:
        return {name: trace.read(name) for name in trace.namelist()}


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"])
@pytest.mark.parametrize("button", ["Send", "Call"])
async def test_a_trace_holds_no_secret_that_is_sent(
    browser: Browser, httpserver: HTTPServer, tmp_path: Path, kind: str, button: str
) -> None:
    httpserver.expect_request("/").respond_with_data(FORM.replace("{kind}", kind), content_type="text/html; charset=utf-8")
    login = LoginConfig(secrets={"word": "$EXACT_TEST_WORD"})
    config = BrowserConfig(screenshots=False, traces=str(tmp_path), login=login)
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        seen = await environment.reset(Task(id="form", instruction="", start=f"http://localhost:{httpserver.port}/"))
        await do(environment, f'fill [{find(seen, "Word").id}] "<word>"')
        await do(environment, f"click [{find(seen, button).id}]")
    entries = read(tmp_path)
    assert [name for name, data in entries.items() if b"s3cret" in data] == []
    assert any(
        re.search(rb"<secret:word>|%3Csecret%3Aword%3E|&lt;secret:word", data)
        for name, data in entries.items()
        if name.startswith("resources/")
    )


async def test_a_folder_that_can_be_none_is_named_before_anything_is_done(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    config = BrowserConfig(screenshots=False, traces=str(tmp_path / "file"))
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        with pytest.raises(UsageError, match=r"no trace can be written to .*/file \(File exists\): name another folder at browser\.traces"):
            await environment.reset(task_at())


async def test_a_trace_that_cannot_be_written_is_reported_and_its_environment_is_closed(
    executable: str,
    httpserver: HTTPServer,
    task_at: Callable[..., Task],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    temporary: Callable[[], list[str]],
) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    folder, outside = tmp_path / "traces", Outside(accounts=(Account(name="ann", fields={}),))
    config = BrowserConfig(screenshots=False, traces=str(folder))
    async with launch(config) as browser:
        environments = BrowserFactory(browser, PageSetup(), config, isolated=False, outside=outside)
        async with environments.open(simulation=False) as environment:
            await environment.reset(task_at())
            folder.rmdir()
            folder.touch()
        assert "test/page is not traced" in caplog.text and not browser.playwright.contexts
        async with asyncio.timeout(10), environments.open(simulation=False):
            pass  # the account is free
    assert not temporary()


async def test_an_environment_whose_closing_is_cancelled_gives_its_account_and_its_context_back(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cancelled(*args: object, **kwargs: object) -> None:
        raise asyncio.CancelledError

    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    before, outside = len(browser.playwright.contexts), Outside(accounts=(Account(name="ann", fields={}),))
    environments = BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=False, outside=outside)
    with monkeypatch.context() as patched, pytest.raises(asyncio.CancelledError):
        async with environments.open(simulation=False) as environment:
            await environment.reset(task_at())
            patched.setattr(PlaywrightTrace, "end", cancelled)
    async with asyncio.timeout(10), environments.open(simulation=False):
        assert len(browser.playwright.contexts) == before
