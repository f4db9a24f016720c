"""What a browser is left with when the opening of an environment fails or is given up, and what a browser leaves when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser as PlaywrightBrowser
from playwright.async_api import BrowserContext, Page

from exact.config import BrowserConfig
from exact.environments.browser import Browser, launch
from exact.errors import UsageError
from tests.processes import marked

pytestmark = pytest.mark.asyncio(loop_scope="session")
ORIGIN = "http://localhost"


async def contexts(browser: Browser, count: int) -> None:
    """Return when so many are open."""
    cdp = await browser.playwright.new_browser_cdp_session()
    async with asyncio.timeout(10):
        while len((await cdp.send("Target.getBrowserContexts"))["browserContextIds"]) != count:  # noqa: ASYNC110 (nobody tells)
            await asyncio.sleep(0.01)
    await cdp.detach()


async def opened(browser: Browser) -> int:
    cdp = await browser.playwright.new_browser_cdp_session()
    return len((await cdp.send("Target.getBrowserContexts"))["browserContextIds"])


async def test_a_permission_that_there_is_not_leaves_no_context(browser: Browser) -> None:
    before = await opened(browser)
    with pytest.raises(UsageError, match="nonsense"):
        await browser.open_context(BrowserConfig(permissions=("nonsense",)), (), (ORIGIN,))
    await contexts(browser, before)


@pytest.mark.parametrize("kind", [PlaywrightBrowser, BrowserContext])
async def test_an_environment_that_is_given_up_while_it_is_opened_leaves_no_context(
    browser: Browser, monkeypatch: pytest.MonkeyPatch, kind: type[PlaywrightBrowser] | type[BrowserContext]
) -> None:
    name = "new_context" if kind is PlaywrightBrowser else "new_page"
    real, made, let, before = getattr(kind, name), asyncio.Event(), asyncio.Event(), await opened(browser)

    async def slow(self: PlaywrightBrowser | BrowserContext, **options: Any) -> BrowserContext | Page:
        done: BrowserContext | Page = await real(self, **options)
        made.set()
        await let.wait()
        return done

    monkeypatch.setattr(kind, name, slow)
    entering = asyncio.ensure_future(browser.open_context(BrowserConfig(), ()))
    await made.wait()
    entering.cancel()
    with pytest.raises(asyncio.CancelledError):
        await entering
    let.set()
    await contexts(browser, before)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
@pytest.mark.parametrize("dies", ["nothing", "browser", "driver"])
async def test_no_file_remains_of_a_browser_whichever_part_dies(
    executable: str, temporary: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, dies: str
) -> None:
    mark = f"LC_EXACT_TEST={os.getpid()}-{dies}"
    monkeypatch.setenv(*mark.split("="))
    gone = asyncio.Event()
    async with launch(BrowserConfig()) as browser:
        browser.playwright.on("disconnected", lambda _: gone.set())
        await browser.open_context(BrowserConfig(), ())
        for process, command in marked(mark).items():
            is_browser = "--user-data-dir=" in command and "--type=" not in command
            if (dies == "driver" and "run-driver" in command) or (dies == "browser" and is_browser):
                os.kill(process, signal.SIGKILL)
        if dies == "browser":
            await gone.wait()
    assert not temporary()


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
async def test_no_process_of_the_browser_has_a_key_of_ours(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver is a program of ours beside the browser, which shows no page."""
    mark = f"LC_EXACT_TEST={os.getpid()}-keys"
    monkeypatch.setenv(*mark.split("="))
    for name in ("OPENAI_API_KEY", "SHOP_PASSWORD", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, "hush-hush")
    async with launch(BrowserConfig()) as browser:
        await browser.open_context(BrowserConfig(), ())
        found = [process for process, command in marked(mark).items() if "run-driver" not in command and "--headless" in command]
        assert len(found) > 1
        assert not any("hush-hush" in (Path("/proc") / str(process) / "environ").read_text() for process in found)


@pytest.fixture
def busy() -> Iterator[None]:
    """Keep the processors busy."""
    with ExitStack() as stack:
        for _ in range(3):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
            stack.callback(process.kill)
        yield


@pytest.mark.usefixtures("executable", "busy")
async def test_no_profile_remains_of_a_browser_that_is_given_up_while_it_starts(
    temporary: Callable[[], list[str]],
) -> None:
    async def start() -> None:
        async with launch(BrowserConfig()):
            await asyncio.Event().wait()

    for later in (0, 0.02, 0.03, 0.04, 0.05):  # seconds since the profile was made: what is written in it meanwhile differs
        starting = asyncio.create_task(start())
        async with asyncio.timeout(60):
            while not any("playwright_" in each for each in temporary()):  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.001)
        await asyncio.sleep(later)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not temporary()
