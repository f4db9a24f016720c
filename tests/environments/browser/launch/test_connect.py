"""Other people's browsers: a running Chromium by its DevTools, the copy of a profile, and emulated devices."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
import pytest
from playwright.async_api import async_playwright
from werkzeug import Request, Response

from exact.cli.dry_run import describe
from exact.config import BrowserConfig, Config
from exact.environments.browser import BrowserFactory, PageSetup, launch
from exact.environments.browser.served import open_remote_site
from exact.environments.sites.site import Outside
from exact.errors import EnvironmentFailure, UsageError
from exact.task import Task

SMALL = BrowserConfig(screenshots=False, width=600, height=400)


@asynccontextmanager
async def running(executable: str, folder: Path) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """Run a browser as a person would, with a free port for its DevTools; yield its address."""
    command = [executable, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--password-store=basic"]
    options = ["--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank"]
    env = {**os.environ, "TMPDIR": str(folder.parent)}
    process = await asyncio.create_subprocess_exec(*command, *options, stderr=asyncio.subprocess.PIPE, env=env, start_new_session=True)
    try:
        async with asyncio.timeout(30):
            async for line in process.stderr:
                if b"DevTools listening on" in line:
                    break
        yield f"http://{line.decode().rpartition('ws://')[2].partition('/')[0]}", process
    finally:
        await end(process)


async def end(process: asyncio.subprocess.Process) -> None:
    """Kill a browser with all its processes, which a script may have started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def shop(httpserver) -> None:
    """Serve a shop that says who is logged in, by a cookie and by local storage."""

    def page(request: Request) -> Response:
        name = request.cookies.get("who", "nobody")
        text = "<title>Shop</title><p id=who></p><input><form method=post action=/buy><button>Buy</button></form>"
        script = f"<script>who.textContent = '{name} and ' + (localStorage.who || 'nobody')</script>"
        return Response(text + script, content_type="text/html")

    httpserver.expect_request("/").respond_with_handler(page)
    httpserver.expect_request("/buy").respond_with_data("<title>Bought</title>Bought", content_type="text/html")
    httpserver.expect_request("/slow").respond_with_data("late", content_type="text/plain")


async def tabs_of(address: str) -> tuple[list[str], list[str], str]:
    """Return the addresses of a browser's tabs, the names of its cookies, and what was typed into its first tab."""
    async with async_playwright() as driver:
        browser = await driver.chromium.connect_over_cdp(address, no_defaults=True)
        pages = browser.contexts[0].pages
        typed = await pages[0].evaluate("document.querySelector('input')?.value || ''")
        found = [page.url for page in pages], [each["name"] for each in await browser.contexts[0].cookies()], typed
        assert len(browser.contexts) == 1
        await browser.close()
        return found


async def test_a_running_browser_is_used_with_its_log_in_and_left_as_it_was_found(executable, httpserver, task_at, tmp_path, temporary):
    shop(httpserver)
    task = task_at()
    async with running(executable, tmp_path / "data") as (address, process):
        async with async_playwright() as driver:
            browser = await driver.chromium.connect_over_cdp(address)
            own = browser.contexts[0].pages[0]
            await own.goto(task.start)
            await own.evaluate("localStorage.who = 'Ann'; document.cookie = 'who=Ann; max-age=999'")
            await own.fill("input", "half a sentence")
            await browser.close()
        before = await tabs_of(address)
        config, warned = msgspec.structs.replace(SMALL, cdp_url=address), []
        async with (
            open_remote_site(config, PageSetup(), Outside(), warn=warned.append) as factory,
            factory.open(simulation=True) as simulated,
            factory.open(simulation=False) as live,
        ):
            assert any("no wall" in text for text in warned)
            for environment in (simulated, live):
                seen = await environment.reset(task)
                assert "Ann and Ann" in seen.text and environment.capabilities.fidelity == "replay"
                assert not environment.capabilities.isolated
            button = next(each.id for each in seen.elements if each.role == "button")
            blocked = await simulated.step(simulated.actions.parse(f"click [{button}]"))
            assert "blocked" in {effect.kind for effect in blocked.effects}
            async with async_playwright() as driver:  # meanwhile the person's own tab may send what it wants
                browser = await driver.chromium.connect_over_cdp(address, no_defaults=True)
                fetched = "fetch('/slow', {method: 'POST', body: 'x'}).then(answer => answer.text())"
                typed = "document.querySelector('input')?.value"
                pages = [page for context in browser.contexts for page in context.pages]  # those of exact's contexts are among them
                (own,) = [page for page in pages if await page.evaluate(typed) == "half a sentence"]
                assert await own.evaluate(fetched) == "late"
                await browser.close()
            done = await live.step(live.actions.parse(f"click [{button}]"))
            assert done.observation is not None and "Bought" in done.observation.text
        assert process.returncode is None and await tabs_of(address) == before
        assert before[2] == "half a sentence"
    assert [request.path for request, _ in httpserver.log if request.method == "POST"] == ["/slow", "/buy"]
    assert [name for name in temporary() if "playwright" not in name] == []


async def test_a_browser_that_goes_away_is_a_failure_of_the_environment(executable, httpserver, task_at, tmp_path):
    shop(httpserver)
    async with (
        running(executable, tmp_path / "data") as (address, process),
        launch(msgspec.structs.replace(SMALL, cdp_url=address)) as browser,
        BrowserFactory(browser, PageSetup(), SMALL, isolated=False).open(simulation=False) as environment,
    ):
        await environment.reset(task_at())
        await end(process)
        with pytest.raises(EnvironmentFailure):
            await environment.step(environment.actions.parse("wait"))


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "ws://127.0.0.1:1/devtools?token=abc123secret"])
async def test_where_no_browser_answers_the_way_out_is_said_and_no_token(address):
    with pytest.raises(EnvironmentFailure, match="--remote-debugging-port") as raised:
        async with launch(msgspec.structs.replace(SMALL, cdp_url=address)):
            pass
    assert "abc123secret" not in str(raised.value) and "127.0.0.1:1" in str(raised.value)


async def test_the_log_in_of_a_profile_comes_from_a_copy_that_is_deleted(executable, httpserver, task_at, tmp_path, temporary):
    shop(httpserver)
    task, data = task_at(), tmp_path / "data"
    async with async_playwright() as driver:
        own = await driver.chromium.launch_persistent_context(data, executable_path=executable, args=["--no-sandbox"])
        page = await own.new_page()
        await page.goto(task.start)
        await page.evaluate("localStorage.who = 'Ann'; document.cookie = 'who=Ann; max-age=999'")
        await own.close()
    (data / "SingletonLock").symlink_to("elsewhere-1")  # as if the person's browser were running
    before = {path: path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}
    async with launch(msgspec.structs.replace(SMALL, profile=str(data))) as browser:
        factory = BrowserFactory(browser, PageSetup(), msgspec.structs.replace(SMALL, profile=str(data)), isolated=False)
        async with factory.open(simulation=True) as one, factory.open(simulation=False) as other:
            for environment in (one, other):
                assert "Ann and Ann" in (await environment.reset(task)).text
    assert {path: path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()} == before
    assert [name for name in temporary() if "playwright" not in name] == []


async def test_a_folder_that_is_no_profile_is_refused(executable, tmp_path):
    for folder in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(UsageError, match="no profile of Chromium"):
            async with launch(msgspec.structs.replace(SMALL, profile=str(folder))):
                pass


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize(("device", "size", "touch"), [("iPhone 15", 393, True), ("Desktop Chrome", 1280, False)])
async def test_a_device_sets_viewport_touch_and_user_agent(device, size, touch, browser, httpserver, task_at):
    script = "<script>document.write([innerWidth, 'ontouchstart' in window, /iPhone/.test(navigator.userAgent)])</script>"
    meta = "<meta name=viewport content='width=device-width'>"
    httpserver.expect_request("/").respond_with_data(f"<title>x</title>{meta}{script}", content_type="text/html")
    config = msgspec.structs.replace(SMALL, device=device)
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        seen = await environment.reset(task_at())
    assert f"{size},{str(touch).lower()},{str(touch).lower()}" in seen.text


@pytest.mark.asyncio(loop_scope="session")
async def test_an_unknown_device_suggests_the_nearest(browser, httpserver, task_at):
    config = msgspec.structs.replace(SMALL, device="iphone 15")
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        with pytest.raises(UsageError, match="did you mean 'iPhone 15"):
            await environment.reset(task_at())


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"cdp_url": "http://a:1", "speculation": "free"}, "set speculation to observe"),
        ({"profile": "/x", "speculation": "free"}, "set speculation to observe"),
        ({"cdp_url": "http://a:1", "profile": "/x"}, "exclude each other"),
        ({"cdp_url": "http://a:1", "sandbox": "required"}, "cannot be used in a sandbox"),
        ({"profile": "/x", "sandbox": "required"}, "cannot be used in a sandbox"),
        ({"cdp_url": "http://a:1", "proxy": {"server": "http://p:1"}}, "cannot be given a proxy"),
        ({"cdp_url": "127.0.0.1:9222"}, "invalid cdp_url '127.0.0.1:9222'"),
    ],
)
def test_a_configuration_that_does_not_fit_is_refused_in_one_line(keys, says):
    with pytest.raises(UsageError, match=says) as raised:
        Config.parse({"browser": keys})
    assert "\n" not in str(raised.value)


def test_the_dry_run_says_that_there_is_no_wall_and_that_the_profile_is_copied(tmp_path):
    task = Task(id="site/a", instruction="Look.", start="http://127.0.0.1:1/")
    said = describe((task,), Config.parse({"browser": {"cdp_url": "http://127.0.0.1:9222"}}), tmp_path, benchmark=False)
    assert "no wall stands around that browser" in said and "not closed" in said
    assert "a copy that is deleted" in describe(
        (task,), Config.parse({"browser": {"profile": "/home/ann/chrome"}}), tmp_path, benchmark=False
    )
