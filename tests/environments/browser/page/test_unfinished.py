"""Pages that never finish are observed as they are, and what keeps them from it is waited for in vain only once."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from playwright.async_api import Error
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.environments.browser.page.tab import Tab
from exact.environments.browser.page.traffic import Traffic
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Task
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look
from tests.http_server import BriefServer

pytestmark = pytest.mark.asyncio(loop_scope="session")
BRIEF = BrowserConfig(screenshots=False, settle_seconds=1.0)
LONG = BrowserConfig(screenshots=False, settle_seconds=60.0)
BUTTON = "<h1>Ready</h1><button onclick=\"document.title = 'hit'\">Go</button>"
Answer = Callable[[Request], Response]


@pytest.fixture
def httpserver() -> Iterator[HTTPServer]:
    """A server that goes on answering while it holds a request."""
    with BriefServer(host="localhost", threaded=True) as server:
        yield server


@pytest.fixture
def held(httpserver: HTTPServer) -> Iterator[threading.Event]:
    """`/held` is answered once the event is set, or the test is over; `/drip` sends a line and then holds the rest."""
    gate = threading.Event()

    def drip() -> Iterator[str]:
        yield "first line\n"
        gate.wait(60)

    def answer(request: Request) -> Response:
        gate.wait(60)
        return Response("late", content_type="text/plain")

    httpserver.expect_request("/held").respond_with_handler(answer)
    httpserver.expect_request("/drip").respond_with_handler(lambda _: Response(drip(), content_type="text/plain"))
    httpserver.expect_request("/quick").respond_with_data("answer")
    yield gate
    gate.set()


NEVER_LOADED = {
    "picture": "<img alt='' src=/held>",
    "picture that drips": "<img alt='' src=/drip>",
    "frame": "<iframe hidden src=/held></iframe>",
    "frame that drips": "<iframe src=/drip></iframe>",
    "script": "<script src=/held></script><p>Later",
    "deferred script": "<script defer src=/held></script>",
    "style sheet": "<link rel=stylesheet href=/held>",
    "video": "<video src=/held></video>",
    "object": "<object data=/held></object>",
    "open document": "<script>setTimeout(() => { const all = document.querySelector('button').outerHTML; document.open();"
    "document.write(all) }, 50)</script>",
}


@pytest.mark.parametrize("rest", NEVER_LOADED.values(), ids=NEVER_LOADED.keys())
async def test_a_start_page_whose_load_never_ends_opens_like_any_other(visit: Visit, held: threading.Event, rest: str) -> None:
    async with visit(BUTTON + rest, config=BRIEF) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert step.observation is not None and step.observation.title == "hit" and step.info == {}


async def test_a_style_sheet_that_does_not_come_keeps_nothing_from_being_drawn(visit: Visit, held: threading.Event) -> None:
    config = BrowserConfig(screenshots=True, settle_seconds=1.0)
    async with visit(f"<link rel=stylesheet href=/held>{BUTTON}", config=config) as (env, seen):
        assert seen.screenshot
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "hit"


@pytest.mark.parametrize("action", ['goto "/unfinished"', "click [Link]", "click [Send]", "go_back"])
async def test_every_navigation_to_a_page_that_never_finishes_is_observed_and_says_so(
    visit: Visit, httpserver: HTTPServer, held: threading.Event, action: str
) -> None:
    httpserver.expect_request("/unfinished").respond_with_data(f"{BUTTON}<img alt='' src=/held>", content_type="text/html")
    start = "<a href=/unfinished>Link</a><form action=/unfinished><button>Send</button></form>"
    async with visit(start, config=BRIEF) as (env, seen):
        if action == "go_back":
            await do(env, 'goto "/unfinished"')
            seen = await look(env, 'goto "/"')
        for name in ("Link", "Send"):
            action = action.replace(f"[{name}]", f"[{find(seen, name).id}]")
        step = await do(env, action)
        assert find(step.observation, "Go")
        after = await do(env, f"click [{find(step.observation, 'Go').id}]")
        assert after.observation is not None and after.observation.title == "hit" and after.info == {}


POLLING = {
    "fetch that is held": "(async function again() { await fetch('/held').catch(() => 0); setTimeout(again) })()",
    "fetch that drips": "(async function again() { await (await fetch('/drip')).text(); setTimeout(again) })()",
    "quick fetch": "(async function again() { await (await fetch('/quick')).text(); again() })()",
    "XHR": "(function again() { const x = new XMLHttpRequest(); x.open('GET', '/held'); x.onloadend = again; x.send() })()",
    "interval": "setInterval(() => fetch('/held'), 50)",
    "quick interval": "setInterval(() => fetch('/quick').then(a => a.text()), 20)",
    "busted cache": "(async function again() { await (await fetch('/quick?_=' + Math.random())).text(); again() })()",
    "posts": "(async function again() { await (await fetch('/quick', {method: 'POST', body: '{}'})).text(); again() })()",
    "events": "new EventSource('/drip')",
    "web socket": "new WebSocket(location.href.replace('http', 'ws'))",
}


@pytest.mark.parametrize("script", POLLING.values(), ids=POLLING.keys())
async def test_a_page_that_asks_again_and_again_is_waited_for_once(
    browser: Browser, httpserver: HTTPServer, held: threading.Event, task_at: Callable[..., Task], script: str
) -> None:
    httpserver.expect_request("/").respond_with_data(f"{BUTTON}<script>{script}</script>", content_type="text/html")
    factory = BrowserFactory(browser, PageSetup(), BRIEF, isolated=False)
    async with factory.open(simulation=False) as env:
        seen = await env.reset(task_at())
        steps = [await do(env, f"click [{find(seen, 'Go').id}]") for _ in range(3)]
        assert all(step.observation and step.observation.title == "hit" for step in steps)
        assert sum(bool(step.info) for step in steps) <= 1  # not every page is caught asking while it is reset
    async with factory.open(simulation=True) as other, asyncio.timeout(30):
        other.episode.tabs.config = LONG
        await other.reset(task_at())


async def test_a_poll_without_answers_that_begins_between_two_actions_is_waited_for_once(
    visit: Visit, httpserver: HTTPServer, held: threading.Event
) -> None:
    asked = threading.Event()

    def answer(request: Request) -> Response:
        asked.set()
        held.wait(60)
        return Response("late")

    httpserver.expect_request("/late").respond_with_handler(answer)
    script = "<script>setTimeout(() => setInterval(() => fetch('/late'), 50), 500)</script>"
    async with visit(BUTTON + script, config=BRIEF) as (env, seen):
        assert await asyncio.to_thread(asked.wait, 60)
        steps = [await do(env, f"click [{find(seen, 'Go').id}]") for _ in range(20)]
        assert sum(bool(step.info) for step in steps) <= 1  # none where the page began its poll while it was reset


async def test_an_action_is_waited_for_beside_a_poll_of_the_same_kind(visit: Visit, httpserver: HTTPServer, held: threading.Event) -> None:
    gate = threading.Event()
    asked = list[str]()

    def answer(request: Request) -> Response:
        asked.append(request.path)
        (gate if len(asked) > 1 else held).wait(60)
        return Response("answer")

    httpserver.expect_request("/items").respond_with_handler(answer)
    page = """<button onclick="load().then(text => out.textContent = text)">Go</button><p id=out></p>
    <script>const load = async () => (await fetch('/items')).text(); (async () => { for (;;) await load() })()</script>"""
    async with visit(page, config=BRIEF) as (env, seen):
        env.episode.tabs.config = LONG
        step = asyncio.ensure_future(do(env, f"click [{find(seen, 'Go').id}]"))
        done, _ = await asyncio.wait([step], timeout=0.5)
        assert not done
        gate.set()
        assert find((await step).observation, "answer")


CHANGING = {
    "text": "setInterval(() => out.textContent++, 2)",
    "style": "(function again() { out.style.left = performance.now() + 'px'; requestAnimationFrame(again) })()",
    "shadow root": "const root = out.attachShadow({mode: 'closed'}); setInterval(() => { root.textContent = performance.now() }, 2)",
    "animations": "setInterval(() => out.animate([{width: '1px'}, {width: '9px'}], 200), 20)",
    "new nodes": "setInterval(() => { out.innerHTML = `<b>${performance.now()}</b>` }, 2)",
}


@pytest.mark.parametrize("script", CHANGING.values(), ids=CHANGING.keys())
async def test_a_part_that_changes_without_end_is_waited_for_once_and_reported(visit: Visit, script: str) -> None:
    config = BrowserConfig(screenshots=False, settle_seconds=1.0)
    async with visit(f"{BUTTON}<p id=out>0</p><script>{script}</script>", config=config) as (env, seen):
        env.episode.tabs.config = LONG
        async with asyncio.timeout(30):
            step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert step.observation is not None and step.observation.title == "hit"
        assert "not waited for again" in step.info["unsettled"]


async def test_what_follows_from_an_action_is_waited_for_beside_a_part_that_changes_without_end(
    visit: Visit, httpserver: HTTPServer, held: threading.Event
) -> None:
    page = """<p id=out>0</p><p id=answer></p><script>setInterval(() => out.textContent++, 2)</script>
    <button onclick="fetch('/held').then(a => a.text()).then(text => answer.textContent = text)">Go</button>"""
    async with visit(page, config=BRIEF) as (env, seen):
        env.episode.tabs.config = LONG
        step = asyncio.ensure_future(do(env, f"click [{find(seen, 'Go').id}]"))
        done, _ = await asyncio.wait([step], timeout=0.5)
        assert not done
        held.set()
        assert find((await step).observation, "late")


async def test_a_slow_answer_to_a_navigation_is_waited_for_beyond_the_settling_time(
    visit: Visit, httpserver: HTTPServer, held: threading.Event
) -> None:
    config = BrowserConfig(screenshots=False, settle_seconds=0.3)
    async with visit("<a href=/held>Link</a>", config=config) as (env, seen):
        asyncio.get_running_loop().call_later(1.0, held.set)
        assert find(await look(env, f"click [{find(seen, 'Link').id}]"), "late")


REPLACED = {
    "refresh": "<meta http-equiv=refresh content=0>",
    "reload": "<script>location.reload()</script>",
    "other address": "<script>location.replace('/?' + Math.random())</script>",
    "late reload": "<script>setTimeout(() => location.reload(), 20)</script>",
}


@pytest.mark.parametrize("screenshots", [False, True], ids=["tree", "screenshot"])
@pytest.mark.parametrize("script", REPLACED.values(), ids=REPLACED.keys())
async def test_a_page_that_replaces_itself_all_the_time_is_observed(visit: Visit, script: str, screenshots: bool) -> None:
    config = BrowserConfig(screenshots=screenshots, settle_seconds=2.0)
    async with asyncio.timeout(240), visit(f"<h1>Ready</h1>{script}", config=config) as (env, seen):
        assert find(seen, "Ready")
        assert find(await look(env, 'press "a"'), "Ready")


async def test_a_blank_page_that_is_replaced_while_it_is_watched_has_changed(visit: Visit, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate, watched = Tab.evaluate, list[str]()

    async def replaced(self: Tab, source: str) -> Any:
        if "exact.change" in source:
            watched.append(source)
            raise Error("Runtime.evaluate: Cannot find context with specified id")
        return await evaluate(self, source)

    monkeypatch.setattr(Tab, "evaluate", replaced)
    script = "<script>setTimeout(() => document.body.append('Ready'), 800)</script>"
    async with visit(f"<body>{script}", config=BrowserConfig(screenshots=False, settle_seconds=0.1)) as (_, seen):
        assert find(seen, "Ready") and watched


@asynccontextmanager
async def started(browser: Browser, task: Task, config: BrowserConfig = BRIEF) -> AsyncIterator[tuple[BrowserEnvironment, Observation]]:
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=False) as env:
        yield env, await env.reset(task)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Response(status=204), "status 204 without a page"),
        (Response(status=205), "status 205 without a page"),
        (Response("a", headers={"Content-Disposition": "attachment; filename=a.txt"}), "a file to download"),
        (Response("b", content_type="application/zip"), "a file to download"),
        (Response(status=302, headers={"Location": "/start"}), "TOO_MANY_REDIRECTS"),
        (Response("<p>Broken", status=503, content_type="text/html"), "status 503"),
    ],
    ids=["204", "205", "attachment", "archive", "redirects", "503"],
)
async def test_a_start_page_without_a_document_is_a_failure_that_says_why(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], answer: Response, said: str
) -> None:
    httpserver.expect_request("/start").respond_with_response(answer)
    with pytest.raises(EnvironmentFailure, match=said):
        async with asyncio.timeout(20), started(browser, task_at("/start")):
            pass


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_start_page_that_is_refused_is_observed(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], status: int
) -> None:
    headers = {"WWW-Authenticate": "Basic realm=here"} if status == 401 else {}
    answer = Response("<h1>Refused</h1>", status=status, headers=headers, content_type="text/html")
    httpserver.expect_request("/start").respond_with_response(answer)
    async with asyncio.timeout(20), started(browser, task_at("/start")) as (_, seen):
        assert find(seen, "Refused")


HOPS: dict[str, Any] = {
    "redirects": Response(status=302, headers={"Location": "/goal"}),
    "refresh": Response("<meta http-equiv=refresh content='0; url=/goal'>", content_type="text/html"),
    "script": Response("<script>location.href = '/goal'</script>", content_type="text/html"),
    "script in the middle": Response("<p>One<script>location.assign('/goal')</script><p>Two" * 20, content_type="text/html"),
    "form": Response("<form action=/goal id=on></form><script>on.submit()</script>", content_type="text/html"),
    "load": Response("<img src=/quick><script>onload = () => location.replace('/goal')</script>", content_type="text/html"),
}


@pytest.mark.parametrize("hop", HOPS.values(), ids=HOPS.keys())
async def test_a_start_page_that_leads_on_while_it_loads_is_followed(
    browser: Browser, httpserver: HTTPServer, held: threading.Event, task_at: Callable[..., Task], hop: Response
) -> None:
    httpserver.expect_request("/start").respond_with_response(hop)
    httpserver.expect_request("/goal").respond_with_data(BUTTON, content_type="text/html")
    async with started(browser, task_at("/start")) as (env, seen):
        assert seen.url.endswith("/goal") or seen.url.endswith("/goal?")
        assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "hit"


@pytest.mark.parametrize("away", ['goto "/quick"', "go_back", "reset", "close_tab"])
async def test_a_page_that_asks_before_it_is_left_hangs_nothing(
    visit: Visit, held: threading.Event, task_at: Callable[..., Task], away: str
) -> None:
    page = "<input aria-label=Note><script>onbeforeunload = event => event.preventDefault()</script>"
    async with asyncio.timeout(30), visit(page, config=BRIEF) as (env, _):
        if away == "close_tab":
            await do(env, "new_tab")
        await do(env, f'goto "{task_at("/quick").start}"')
        start = await look(env, f'goto "{task_at().start}"')
        await do(env, f'fill [{find(start, "Note").id}] "x"')
        if away == "reset":
            assert find(await env.reset(task_at()), "Note")
        elif away == "close_tab":
            assert (await look(env, away)).tabs == ()
        else:
            assert find(await look(env, away), "Leave")
            assert "Leave" not in (await look(env, "accept")).text


@pytest.mark.parametrize("rest", [0.0, 0.05], ids=["stops", "drips"])
@pytest.mark.parametrize("length", [0, 3000, 9000])
async def test_a_document_that_never_ends_is_shown_as_far_as_it_has_come(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], rest: float, length: int
) -> None:
    over = threading.Event()

    def body() -> Iterator[str]:
        yield f"<!doctype html><p>{'-' * length}</p>{BUTTON}"
        while not over.wait(rest or 60):
            yield " "

    httpserver.expect_request("/start").respond_with_handler(lambda _: Response(body(), content_type="text/html"))
    config = BrowserConfig(screenshots=False, settle_seconds=1.0, answer_seconds=8.0)
    try:
        async with asyncio.timeout(40), started(browser, task_at("/start"), config) as (env, seen):
            assert (await look(env, f"click [{find(seen, 'Go').id}]")).title == "hit"
    finally:
        over.set()


async def test_a_document_that_ends_late_is_whole(browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]) -> None:
    over = threading.Event()

    def body() -> Iterator[str]:
        yield BUTTON
        over.wait(30)
        yield "<p>The end"

    httpserver.expect_request("/start").respond_with_handler(lambda _: Response(body(), content_type="text/html"))
    asyncio.get_running_loop().call_later(2.5, over.set)  # longer than the first try may take
    config = BrowserConfig(screenshots=False, settle_seconds=1.0, answer_seconds=8.0)
    async with asyncio.timeout(40), started(browser, task_at("/start"), config) as (_, seen):
        assert find(seen, "The end")


async def test_a_request_costs_the_same_however_many_others_are_unanswered() -> None:
    """A page that floods refused requests must not take the time of the environments beside it."""

    class Page:
        def on(self, name: str, handler: Callable[[dict[str, Any]], object]) -> None:
            self.__dict__.setdefault(name, handler)

    def steps(before: int) -> int:
        page, taken = Page(), 0
        traffic = Traffic(cast(Any, page))

        def send(number: int) -> None:
            request = {"url": f"http://shop.test/{chr(97 + number % 26) * (number % 99)}{number}", "method": "GET"}
            page.__dict__["Network.requestWillBeSent"]({"requestId": str(number), "type": "Fetch", "request": request, "loaderId": "1"})

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal taken
            taken += event == "call"

        for number in range(before):
            send(number)
        sys.setprofile(count)
        try:
            send(before)
        finally:
            sys.setprofile(None)
        assert not traffic.is_idle
        return taken

    assert steps(2000) == steps(20)
