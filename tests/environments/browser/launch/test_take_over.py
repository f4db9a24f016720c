"""A person takes the agent's browser over: a running one by its DevTools, and a headed one on a screen with mouse and keys."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from playwright.async_api import async_playwright
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.browser import BrowserEnvironment, BrowserFactory, PageSetup, find_browser, launch
from exact.environments.desktop.screen import Screen
from exact.errors import EnvironmentFailure
from exact.task import Task

from .test_connect import SMALL, running

CODE = "<title>Code</title><form action=/in method=post style='margin:0'><input name=code aria-label=Code autofocus style='{style}'></form>"
WHOLE = "position:fixed;inset:0;width:100vw;height:100vh"
"""Style of a field that fills the window, wherever a click lands."""


def serve(server: HTTPServer, style: str = "") -> None:
    """Serve a page that asks for a code, and the one behind it."""
    server.expect_request("/").respond_with_data(CODE.format(style=style), content_type="text/html")
    server.expect_request("/in", method="POST").respond_with_data("<title>In</title><a href=/>Again</a>", content_type="text/html")


async def go_on(environment: BrowserEnvironment, server: HTTPServer) -> None:
    """Look at what a person did, and let the agent go on from there."""
    came = await environment.look()
    assert came.observation is not None and came.observation.title == "In"
    assert [effect.method for effect in came.effects if effect.is_write][-1] == "PERSON"
    assert [request.form["code"] for request, _ in server.log if request.method == "POST"] == ["1234"]
    link = next(each for each in came.observation.elements if each.role == "link")
    after = (await environment.step(environment.actions.parse(f"click [{link.id}]"))).observation
    assert after is not None and after.title == "Code"


async def test_a_person_acts_in_a_running_browser_and_the_agent_goes_on(
    executable: str, httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path
) -> None:
    serve(httpserver)
    async with running(executable, tmp_path / "data") as (address, _):
        config = msgspec.structs.replace(SMALL, cdp_url=address)
        async with launch(config) as browser, BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as live:
            await live.reset(task_at())
            async with async_playwright() as driver:
                own = await driver.chromium.connect_over_cdp(address, no_defaults=True)
                pages = [page for context in own.contexts for page in context.pages]
                (page,) = [page for page in pages if await page.title() == "Code"]
                await page.fill("input", "1234")
                async with page.expect_navigation():
                    await page.press("input", "Enter")
                await own.close()
            await go_on(live, httpserver)


@contextmanager
def display(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a screen and name it in DISPLAY."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "800x600x24", "-nolisten", "tcp", "-ac"]
    process = subprocess.Popen(command, pass_fds=[writing], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder)
    try:
        os.close(writing)
        number = os.read(reading, 16)
        patch.setenv("DISPLAY", f":{number.decode().strip()}")
        yield
    finally:
        process.terminate()
        process.wait()
        os.close(reading)


def press(*keys: str) -> None:
    """Click into the middle of the screen and press keys, as a person does."""
    screen = Screen()
    try:
        screen.move(400, 400)
        screen.click()
        for key in keys:
            screen.keyboard.press(key)
        screen.sync()
    finally:
        screen.close()


async def test_a_person_types_into_a_headed_browser_and_the_agent_goes_on(
    httpserver: HTTPServer, task_at: Callable[..., Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which("Xvfb"):
        pytest.skip("there is no Xvfb")
    try:
        find_browser(headed=True)
    except EnvironmentFailure as error:
        pytest.skip(str(error))
    serve(httpserver, WHOLE)
    config = BrowserConfig(screenshots=False, headed=True, width=780, height=500)
    with display(tmp_path, monkeypatch):
        async with launch(config) as browser, BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as live:
            seen = await live.reset(task_at())
            assert seen.title == "Code"
            async with live.page.expect_navigation():
                await asyncio.to_thread(press, "1", "2", "3", "4", "Return")
            await go_on(live, httpserver)
