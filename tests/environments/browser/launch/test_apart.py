"""A browser in a network namespace of its own: whatever it opens there leads nowhere, except for the walls of its contexts."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from playwright.async_api import Error, async_playwright
from pytest_httpserver import HTTPServer

from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.options import no_sandbox
from exact.environments.browser.launch.pipe import shared_pipe
from exact.task import Task
from tests.conftest import CONFIG
from tests.environments.browser.network.test_wall import listening

pytestmark = pytest.mark.asyncio(loop_scope="session")
OPEN = """async port => {
  const wait = new Promise(next => setTimeout(next, 1500));
  const peer = new RTCPeerConnection({iceServers: ['tcp', 'udp'].map(way => (
    {urls: `turn:127.0.0.1:${port}?transport=${way}`, username: 'u', credential: 'c'}))});
  peer.createDataChannel('x');
  await peer.setLocalDescription(await peer.createOffer());
  const answers = await Promise.all([fetch(`http://127.0.0.1:${port}/`, {mode: 'no-cors'}).then(() => 1, () => 0), wait]);
  return answers[0];
}"""


def namespace(process: int | str) -> str:
    return str(Path(f"/proc/{process}/ns/net").readlink())


def members(of: str) -> set[int]:
    """Return the processes in a network namespace."""
    found = set()
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and namespace(each.name) == of:
                found.add(int(each.name))
        except OSError:  # it has ended, or is of another user
            continue
    return found


def interfaces(process: int) -> list[str]:
    lines = Path(f"/proc/{process}/net/dev").read_text().splitlines()[2:]
    return [line.split(":")[0].strip() for line in lines]


@pytest.mark.parametrize("apart", [True, False])
async def test_a_browser_without_any_wall_reaches_nothing_from_its_namespace(tmp_path: Path, apart: bool) -> None:
    """The browser has no proxy and no request policy here: what holds it is the namespace alone. Beside it, it reaches the server."""
    with listening() as ear:
        async with async_playwright() as driver, shared_pipe(str(find_browser()), tmp_path, apart=apart) as (program, pipe):
            browser = await driver.chromium.launch(executable_path=program, args=no_sandbox())
            try:
                if apart and not (pipe and pipe.is_apart):
                    pytest.skip("this user may make no network namespace")
                page = await browser.new_page()
                await page.evaluate(OPEN, ear.port)
                with suppress(Error):  # there is no such server
                    await page.goto(f"http://127.0.0.1:{ear.port}/", timeout=3000)
            finally:
                await browser.close()
    assert (ear.heard == []) is apart


async def test_a_site_works_in_the_namespace_and_nothing_stays_in_it(httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("<h1>Here</h1><script>fetch('/x')</script>", content_type="text/html")
    async with launch(CONFIG) as browser:
        if not browser.is_apart:
            pytest.skip("this user may make no network namespace")
        assert browser._pipe is not None
        found = (await browser._pipe.send("SystemInfo.getProcessInfo"))["processInfo"]
        here = namespace(next(each["id"] for each in found if each["type"] == "browser"))
        assert here != namespace("self")
        assert interfaces(next(iter(members(here)))) == ["lo"]
        async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=True) as environment:
            seen = await environment.reset(Task(id="apart/site", instruction="", start=httpserver.url_for("/")))
            assert "Here" in seen.text
    for _ in range(100):
        if not (left := members(here)):
            break
        os.sched_yield()
    assert not left


async def test_a_browser_that_does_not_start_in_a_namespace_starts_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\n[ "$(readlink /proc/self/ns/net)" = "{namespace("self")}" ] || exit 1\nexec {find_browser()} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("EXACT_BROWSER", str(script))
    async with launch(CONFIG) as browser:
        assert not browser.is_apart
        assert browser.version
