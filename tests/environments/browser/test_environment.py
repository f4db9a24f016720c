"""The environment's contract, in a real browser."""

import asyncio
import io
import threading
import time
from collections.abc import Callable

import pytest
from PIL import Image
from playwright.async_api import Error, Page
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.config import BrowserConfig
from exact.environments.base import Snapshot
from exact.environments.browser import Browser, BrowserFactory, PageSetup, launch
from exact.environments.browser.page.setup import Beginning
from exact.environments.sites.site import Hook, Outside, Site
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.task import Outcome, Score, Task
from tests.environments.browser.page.test_settle import gated
from tests.http_server import BriefServer

from ...conftest import CONFIG, Visit
from ..leaps import Leaps
from .pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")
NOTHING = Outcome(actions=())
GAME = PageSetup(
    begin="async seed => { await null; document.title = 'seed ' + seed; document.querySelector('button').disabled = false }",
    instruction="document.querySelector('h1').textContent",
    terminated="globalThis.over === true",
)


@pytest.mark.parametrize("isolated", [True, False])
async def test_a_reset_leaves_nothing_of_before(visit: Visit, httpserver: HTTPServer, task_at: Callable[..., Task], isolated: bool) -> None:
    keep = """localStorage.k = sessionStorage.k = document.cookie = 'k=1'; window.name = 'k'; caches.open('k');
    indexedDB.open('k'); navigator.serviceWorker.register('/sw.js').catch(() => 0)"""
    left = """async () => [localStorage.length, sessionStorage.length, document.cookie, window.name, (await caches.keys()).length,
    (await indexedDB.databases()).length, (await navigator.serviceWorker.getRegistrations()).length, history.length]"""
    httpserver.expect_request("/sw.js").respond_with_data("onfetch = () => 0", content_type="text/javascript")
    async with visit(f'<button onclick="{keep}">Keep</button>', isolated=isolated) as (env, seen):
        fresh = await env.page.evaluate(left)
        await do(env, f"click [{find(seen, 'Keep').id}]")
        assert (await env.page.evaluate(left))[:4] == [1, 1, "k=1", "k"]
        assert await env.reset(task_at()) == seen
        assert await env.page.evaluate(left) == fresh == [0, 0, "", "", 0, 0, 0, fresh[-1]]


async def test_a_reset_after_other_pages_leaves_nothing_either(visit: Visit, httpserver: HTTPServer, task_at: Callable[..., Task]) -> None:
    httpserver.expect_request("/away").respond_with_data("<script>sessionStorage.k = localStorage.k = 1</script>", content_type="text/html")
    away = f"http://127.0.0.1:{httpserver.port}"
    config = BrowserConfig(screenshots=False, allow_origins=(away,))
    async with visit("<p>Here", isolated=True, config=config) as (env, seen):
        await do(env, f'goto "{away}/away"')
        assert await env.reset(task_at()) == seen
        await do(env, 'goto "/"')
        await env.page.goto(f"{away}/")
        assert await env.page.evaluate("[sessionStorage.length, localStorage.length]") == [0, 0]


@pytest.mark.parametrize("isolated", [True, False])
async def test_only_an_isolated_environment_is_emptied_instead_of_opened_anew(
    visit: Visit, task_at: Callable[..., Task], isolated: bool
) -> None:
    async with visit("<p>Here", isolated=isolated) as (env, _):
        before = env.page
        await env.reset(task_at())
        assert (env.page is before) is isolated


async def test_an_isolated_environment_is_emptied_though_its_page_asks_whether_it_may_be_left(
    visit: Visit, task_at: Callable[..., Task]
) -> None:
    async with visit('<input aria-label=Draft oninput="onbeforeunload = event => event.preventDefault()">', isolated=True) as (env, seen):
        before = env.page
        asked = await do(env, f'fill [{find(seen, "Draft").id}] "half"')
        assert asked is not None
        async with asyncio.timeout(20):
            assert await env.reset(task_at()) == seen
        assert env.page is before


async def test_a_reset_takes_the_pointer_away(visit: Visit, task_at: Callable[..., Task]) -> None:
    page = "<style>p { display: none } div:hover p { display: block }</style><div role=group aria-label=Menu>Menu<p>Secret</div>"
    async with visit(page, isolated=True) as (env, seen):
        assert "Secret" in (await look(env, f"hover [{find(seen, 'Menu').id}]")).text
        assert await env.reset(task_at()) == seen
        assert await look(env, "wait") == seen


async def test_an_environment_begins_with_the_seed_and_tells_its_goal(visit: Visit, task_at: Callable[..., Task]) -> None:
    async with visit("<h1>Press it</h1><button disabled>Go</button>", setup=GAME) as (env, seen):
        assert (seen.title, seen.instruction) == ("seed 0", "Press it")
        assert find(seen, "Go").states == ()
        assert (await env.reset(task_at(seed=7))).title == "seed 7"


async def test_an_environment_begins_once_the_scripts_of_a_slow_page_have_run(visit: Visit, httpserver: HTTPServer) -> None:
    def late(_: object) -> Response:
        threading.Event().wait(1.5)
        return Response("function late() { document.title = 'late' }", content_type="text/javascript")

    httpserver.expect_request("/late.js").respond_with_handler(late)
    config, setup = BrowserConfig(screenshots=False, settle_seconds=0.2), PageSetup(begin="seed => late()")
    async with visit("<h1>Slow</h1><script src=/late.js></script>", setup=setup, config=config) as (_, seen):
        assert seen.title == "late"


async def test_an_episode_that_ended_is_not_observed_and_not_acted_in(visit: Visit) -> None:
    page = "<h1>Press it</h1><button onclick=\"over = true; document.body.innerHTML = 'Reward 1.0'\">Go</button>"
    async with visit(page, setup=GAME) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert (step.observation, step.terminated) == (None, True)
        with pytest.raises(ActionError, match="the episode is over"):
            await do(env, "wait")


async def test_an_episode_that_ends_later_is_noticed_at_the_next_step(visit: Visit) -> None:
    async with visit(
        "<h1>Wait</h1><button></button><script>onclick = () => setTimeout(() => { over = true }, 200)</script>", setup=GAME
    ) as (
        env,
        _,
    ):
        first = await do(env, "click_at 300 300")
        assert first.terminated or (await do(env, "wait")).terminated


async def test_stop_ends_the_episode_and_leaves_the_page_alone(visit: Visit) -> None:
    async with visit("<p id=p>Here</p><script>onkeydown = onclick = () => p.textContent = 'touched'</script>") as (env, _):
        step = await do(env, 'stop "42"')
        assert (step.observation, step.terminated, step.effects) == (None, True, ())
        assert await env.page.evaluate("p.textContent") == "Here"
        with pytest.raises(ActionError, match="the episode is over"):
            await do(env, "click [1]")


async def test_the_evaluator_gets_the_page_as_it_is(visit: Visit) -> None:
    async def verdict(page: Page, outcome: Outcome) -> Score:
        return Score(value=1.0, success=await page.title() == "Test", reason=str(outcome.answer))

    async with visit("<p>Here", evaluator=verdict) as (env, _):
        await do(env, 'stop "42"')
        assert await env.evaluate(Outcome(actions=(), answer="42")) == Score(value=1.0, success=True, reason="42")


async def test_an_environment_without_an_evaluator_says_so(visit: Visit) -> None:
    async with visit("<p>Here") as (env, _):
        with pytest.raises(UsageError, match="no evaluator"):
            await env.evaluate(NOTHING)


async def test_snapshots_are_of_pages_and_an_unknown_one_is_named(visit: Visit) -> None:
    config = BrowserConfig(screenshots=False, page_snapshots=True)
    async with visit("<p>Here", isolated=True, config=config) as (env, _):
        assert (env.capabilities.fidelity, env.capabilities.isolated) == ("page", True)
        with pytest.raises(EnvironmentFailure, match="snapshot 1 is not of these environments"):
            await env.restore(Snapshot(id="1", fidelity="page", fingerprint=""))


async def test_pages_are_kept_only_where_that_was_asked_for(visit: Visit) -> None:
    async with visit("<p>Here", isolated=True) as (env, _):
        assert env.capabilities.fidelity == "replay"
        with pytest.raises(EnvironmentFailure, match=r"set browser\.page_snapshots"):
            await env.snapshot()


async def test_a_screenshot_is_the_viewport_without_what_is_hidden(visit: Visit) -> None:
    page = "<body style='margin:0;background:#fff'><div class=cover style='position:fixed;inset:0;background:#f00'></div>"
    config = BrowserConfig(width=300, height=200)
    async with visit(page, config=config, setup=PageSetup(hidden=(".cover",))) as (env, seen):
        assert env.capabilities.screenshots
        assert seen.screenshot is not None
        image = Image.open(io.BytesIO(seen.screenshot)).convert("RGB")
        assert image.size == (300, 200)
        assert image.getcolors() == [(60_000, (255, 255, 255))]


async def test_no_screenshot_is_taken_where_none_is_asked_for(visit: Visit) -> None:
    async with visit("<p>Here") as (_, seen):
        assert seen.screenshot is None


async def test_environments_of_one_browser_know_nothing_of_each_other(visit: Visit) -> None:
    page = "<button onclick=\"this.textContent = 'n ' + (localStorage.n = +(localStorage.n ?? 0) + 1)\">Go</button>"
    async with visit(page) as (one, seen), visit(page) as (two, _):
        act = f"click [{find(seen, 'Go').id}]"
        first, second = await asyncio.gather(look(one, act), look(two, act))
        assert first == second
        assert find(first, "n 1")


async def test_acting_before_the_first_reset_is_refused(browser: Browser) -> None:
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as env:
        with pytest.raises(ActionError):
            await do(env, "wait")
        with pytest.raises(EnvironmentFailure, match="reset first"):
            env.page  # noqa: B018


async def test_a_page_that_floods_while_nobody_acts_is_a_broken_environment_and_a_reset_repairs_it(
    visit: Visit, task_at: Callable[..., Task]
) -> None:
    # More than are refused one by one, and fewer than may wait: only one of the two bounds can be met, however slow the machine.
    flood = "for (let n = 0; n < 1500; n++) fetch('http://127.0.0.9:9/' + n, {mode: 'no-cors'}).catch(() => 0)"
    async with visit(f'<button onclick="setTimeout(() => {{ {flood} }}, 700)">Go</button>') as (env, seen), asyncio.timeout(60):
        await do(env, f"click [{find(seen, 'Go').id}]")
        while not env.episode.tabs.window.flooded:  # noqa: ASYNC110 - the page is told by nobody
            await asyncio.sleep(0.05)
        began = time.monotonic()
        with pytest.raises(
            EnvironmentFailure, match="floods the browser, so it was ended: it sent more than 1,000 requests that are refused"
        ):
            await do(env, "wait")
        assert time.monotonic() - began < 5
        assert find(await env.reset(task_at()), "Go")


async def test_a_crashed_page_is_a_broken_environment_and_a_reset_repairs_it(visit: Visit, task_at: Callable[..., Task]) -> None:
    async with visit("<p>Here") as (env, seen):
        with pytest.raises(EnvironmentFailure, match="the page crashed"):
            await asyncio.gather(do(env, "wait"), env.episode.tabs.present.cdp.send("Page.crash"))
        with pytest.raises(ActionError, match="reset first"):
            await do(env, "wait")
        assert await env.reset(task_at()) == seen


async def test_a_server_that_is_not_there_is_a_broken_environment(browser: Browser) -> None:
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as env:
        with pytest.raises(EnvironmentFailure, match="ERR_CONNECTION_REFUSED"):
            await env.reset(Task(id="x", instruction="", start="http://localhost:1234/"))


async def test_a_browser_that_was_killed_is_a_broken_environment_and_closes_quietly(
    executable: str, httpserver: HTTPServer, task_at: Callable[..., Task]
) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    async with launch(CONFIG) as browser, BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as env:
        await env.reset(task_at())
        session = await browser.playwright.new_browser_cdp_session()
        step, crash = await asyncio.gather(do(env, "wait"), session.send("Browser.crash"), return_exceptions=True)
        assert isinstance(crash, Error)
        assert isinstance(step, EnvironmentFailure) and "the browser is gone: launch it again" in str(step)
        with pytest.raises(EnvironmentFailure, match="the browser is gone"):
            await env.reset(task_at())


async def test_names_of_local_servers_are_what_pages_see(executable: str, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    hosts = {"shop.test": f"127.0.0.1:{httpserver.port}"}
    async with (
        launch(CONFIG, hosts) as browser,
        BrowserFactory(browser, PageSetup(hosts=hosts), CONFIG, isolated=True).open(simulation=True) as env,
    ):
        assert (await env.reset(Task(id="x", instruction="", start="http://shop.test/"))).url == "http://shop.test/"


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "localhost."])
async def test_a_name_of_a_local_server_has_no_spelling_that_leads_elsewhere(executable: str, httpserver: HTTPServer, name: str) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Mapped", content_type="text/html")
    hosts = {"Localhost": f"127.0.0.1:{httpserver.port}"}
    with BriefServer() as other:
        other.expect_request("/").respond_with_data("<p>Elsewhere", content_type="text/html")
        start = f"http://{name}:{other.port}/"
        async with (
            launch(CONFIG, hosts) as browser,
            BrowserFactory(browser, PageSetup(hosts=hosts), CONFIG, isolated=True).open(simulation=True) as env,
        ):
            assert "Mapped" in (await env.reset(Task(id="x", instruction="", start=start))).text
        assert not other.log


@pytest.mark.parametrize(
    ("way", "action", "clock"),
    [
        ("onclick='opener.choose(); window.close()'", "click", 0),
        ("onmousedown='opener.choose(); window.close()'", "click", 0),
        ("onclick='opener.choose(); setTimeout(() => window.close(), 30)'", "click", 0),
        ("onclick='opener.choose(); setTimeout(() => window.close(), 30)'", "click", 100),
        ("onclick='opener.choose(); fetch(`/late`); setTimeout(() => window.close(), 30)'", "click", 0),
        ("autofocus onkeydown='opener.choose(); window.close()'", "press", 0),
    ],
)
async def test_a_popup_that_closes_itself_leaves_the_page_that_opened_it(
    visit: Visit, httpserver: HTTPServer, way: str, action: str, clock: int
) -> None:
    gate = gated(httpserver, "/late", "")
    httpserver.expect_request("/popup").respond_with_data(f"<button {way}>Choose</button>", content_type="text/html")
    page = """<button onclick="window.open('/popup')">Open</button><p id=out></p>
    <script>function choose() { out.textContent = 'chosen' }</script>"""
    async with visit(page, config=BrowserConfig(screenshots=False, settle_seconds=10.0, clock=clock)) as (env, seen):
        try:
            popup = await look(env, f"click [{find(seen, 'Open').id}]")
            step = await do(env, f"click [{find(popup, 'Choose').id}]" if action == "click" else 'press "x"')
        finally:
            gate.set()
        assert step.observation is not None and step.observation.url == seen.url and find(step.observation, "chosen")
        assert step.info == {} and step.observation.tabs == ()


async def test_an_environment_whose_only_page_closes_is_broken(visit: Visit) -> None:
    async with visit("<p>Here") as (env, _):
        with pytest.raises(EnvironmentFailure):
            await asyncio.gather(do(env, "wait"), env.page.close())


async def test_preparing_an_environment_has_its_own_time_limits_and_leaves_the_pages_limit_whole(
    visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaps = Leaps(monkeypatch)

    async def prepare(beginning: Beginning) -> None:
        await leaps.by(3600)

    async with visit("<p>Here", setup=PageSetup(prepare=prepare)) as (env, seen):
        assert "Here" in seen.text
        with pytest.raises(EnvironmentFailure, match="the page did not answer for"):
            await asyncio.gather(do(env, "wait"), leaps.by(3600))


@pytest.mark.parametrize("seconds", [300, 700])
async def test_a_late_evaluation_by_a_model_is_waited_for_and_a_missing_one_is_not(
    visit: Visit, monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    leaps = Leaps(monkeypatch)

    async def judge(page: Page, outcome: Outcome) -> Score:
        await leaps.by(seconds)
        return Score(value=1.0, success=True)

    async with visit("<p>Here", evaluator=judge) as (env, _):
        if seconds < 600:
            assert (await env.evaluate(NOTHING)).value == 1
        else:
            with pytest.raises(EnvironmentFailure, match="no score came within 600 s"):
                await env.evaluate(NOTHING)


async def test_the_hook_of_a_site_has_a_limit_of_its_own(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], monkeypatch: pytest.MonkeyPatch
) -> None:
    httpserver.expect_request("/").respond_with_data("<p>Here", content_type="text/html")
    leaps, hook = Leaps(monkeypatch), Hook(command=("true",))
    monkeypatch.setattr(Hook, "call", lambda *_, **__: leaps.by(3600))
    outside = Outside(site=Site(base=httpserver.url_for("/"), reset=hook, snapshot=hook, restore=hook))
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False, outside=outside).open(simulation=False) as env:
        assert "Here" in (await env.reset(task_at())).text


async def test_a_page_that_crashes_while_its_environment_is_prepared_is_not_waited_for(visit: Visit) -> None:
    async def prepare(beginning: Beginning) -> None:
        cdp = await beginning.context.new_cdp_session(beginning.page)
        await asyncio.gather(asyncio.Event().wait(), cdp.send("Page.crash"), return_exceptions=True)

    with pytest.raises(EnvironmentFailure, match="the page crashed"):
        async with visit("<p>Here", setup=PageSetup(prepare=prepare)):
            pass
