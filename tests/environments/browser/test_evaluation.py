"""An evaluator is never kept waiting by a page: it gets its answer, or its environment fails with the reason."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.benchmarks.own.evaluate import _by_function
from exact.benchmarks.webarena.locate import looking_at
from exact.benchmarks.webarena.variables import Addresses
from exact.config import BrowserConfig
from exact.environments.browser.page import settle, timeouts
from exact.errors import EnvironmentFailure, EvaluatorError
from exact.task import Outcome, Score
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look
from tests.http_server import BriefServer

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.asyncio(loop_scope="session")
BRIEF = BrowserConfig(screenshots=False, settle_seconds=0.5, answer_seconds=2.0)
LEFT = "<input aria-label=Note><script>onbeforeunload = event => event.preventDefault()</script>"
OUTCOME = Outcome(actions=(), answer="done")
Found = Callable[["Page"], Awaitable[object]]


def judged(found: Found) -> Callable[[Page, Outcome], Awaitable[Score]]:
    """An evaluator as the user writes it: a function of a page."""

    async def function(page: Page, outcome: Outcome) -> object:
        return await found(page)

    return _by_function(function, "checks.py:function")


@pytest.fixture
def httpserver() -> Iterator[HTTPServer]:
    """A server that goes on answering while it holds a request."""
    with BriefServer(host="localhost", threaded=True) as server:
        yield server


@pytest.fixture
def held(httpserver: HTTPServer) -> Iterator[threading.Event]:
    """`/held` is answered once the test is over; `/saved` shows what was saved; `/file` is a download."""
    gate = threading.Event()

    def answer(request: Request) -> Response:
        gate.wait(60)
        return Response("late")

    httpserver.expect_request("/held").respond_with_handler(answer)
    httpserver.expect_request("/saved").respond_with_data("<p id=saved>nothing</p>", content_type="text/html")
    httpserver.expect_request("/unfinished").respond_with_data("<p id=saved>nothing</p><img src=/held>", content_type="text/html")
    httpserver.expect_request("/file").respond_with_data("x", headers={"Content-Disposition": "attachment; filename=a.txt"})
    yield gate
    gate.set()


async def saved(page: Page) -> bool:
    await page.goto(page.url + "saved")
    return await page.inner_text("#saved") == "Ann"


async def reloaded(page: Page) -> bool:
    await page.reload()
    return await page.locator("input").input_value() == "Ann"


async def beside(page: Page) -> bool:
    async with looking_at(page, page.url + "unfinished", Addresses("", {})) as other:
        return await other.inner_text("#saved") == "Ann"


@pytest.mark.parametrize("found", [saved, reloaded, beside])
async def test_what_was_not_saved_on_a_page_that_asks_before_it_is_left_is_a_score_of_0(
    visit: Visit, held: threading.Event, found: Found
) -> None:
    async with asyncio.timeout(40), visit(LEFT, config=BRIEF, evaluator=judged(found)) as (env, seen):
        await do(env, f'fill [{find(seen, "Note").id}] "Ann"')
        assert (await env.evaluate(OUTCOME)).value == 0.0


@pytest.mark.parametrize("script", ["alert('Hello')", "out.textContent = confirm('Sure?')", "out.textContent = prompt('Name?', 'Ann')"])
async def test_a_dialog_that_the_agent_left_open_is_answered_and_decides_nothing(visit: Visit, script: str) -> None:
    async def shown(page: Page) -> bool:
        return await page.inner_text("#out") in ("", "false")

    page = f'<button onclick="{script}">Go</button><p id=out></p>'
    async with asyncio.timeout(30), visit(page, config=BRIEF, evaluator=judged(shown)) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Go').id}]"), "OK")
        assert (await env.evaluate(OUTCOME)).success


@pytest.mark.parametrize("script", ["setInterval(() => alert('Again'), 5)", "setInterval(print, 5)", "onload = () => alert('Hello')"])
async def test_dialogs_that_come_while_evaluating_are_answered(visit: Visit, httpserver: HTTPServer, script: str) -> None:
    httpserver.expect_request("/noisy").respond_with_data(f"<p id=out>here</p><script>{script}</script>", content_type="text/html")

    async def shown(page: Page) -> bool:
        async with looking_at(page, page.url + "noisy", Addresses("", {})) as other:
            return await other.inner_text("#out") == "here"

    async with asyncio.timeout(40), visit("", config=BRIEF, evaluator=judged(shown)) as (env, _):
        assert (await env.evaluate(OUTCOME)).success


@pytest.mark.parametrize("script", ["for (;;);", "for (;;) alert('Again')", "for (;;) confirm('Again')"])
@pytest.mark.parametrize("place", ["here", "beside"])
async def test_a_page_that_does_not_answer_is_a_failure_that_says_so(
    visit: Visit, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, script: str, place: str
) -> None:
    monkeypatch.setattr(timeouts, "PAGE_TIMEOUT", 2.0)
    stuck = f"<p>Stuck<script>setTimeout(() => {{ {script} }}, 100)</script>"
    httpserver.expect_request("/stuck").respond_with_data(stuck, content_type="text/html")

    async def shown(page: Page) -> bool:
        target = page if place == "here" else await page.context.new_page()
        await target.goto(page.url + "stuck")
        await target.wait_for_function("document.title == 'never'", timeout=0)
        return True

    async with asyncio.timeout(40), visit("", config=BRIEF, evaluator=judged(shown)) as (env, _):
        with pytest.raises(EnvironmentFailure, match="stuck did not answer for 3 s"):
            await env.evaluate(OUTCOME)


@pytest.mark.parametrize("rest", ["<img src=/held>", "<script defer src=/held></script>", "<iframe src=/held></iframe>"])
@pytest.mark.parametrize("place", ["here", "beside"])
async def test_a_load_that_does_not_end_keeps_no_evaluator_waiting(
    visit: Visit, httpserver: HTTPServer, held: threading.Event, monkeypatch: pytest.MonkeyPatch, rest: str, place: str
) -> None:
    monkeypatch.setattr(settle, "LOAD_SECONDS", 0.5)
    httpserver.expect_request("/page").respond_with_data(f"<p id=out>here</p>{rest}", content_type="text/html")

    async def shown(page: Page) -> bool:
        target = page if place == "here" else await page.context.new_page()
        await target.goto(page.url + "page")
        return await target.inner_text("#out") == "here"

    async with asyncio.timeout(20), visit("", config=BRIEF, evaluator=judged(shown)) as (env, _):
        assert (await env.evaluate(OUTCOME)).success


@pytest.fixture
def halves(httpserver: HTTPServer) -> Iterator[threading.Event]:
    """`/halves` sends the head of a document, and the rest once the test lets it go; `/blocked` waits for a script as long."""
    gate = threading.Event()

    def sent() -> Iterator[bytes]:
        yield b"<!doctype html><title>Halves</title><p id=first>one</p>" + b" " * 4096
        gate.wait(60)
        yield b"<p id=second>two</p>"

    def script(request: Request) -> Response:
        gate.wait(60)
        return Response("", content_type="text/javascript")

    httpserver.expect_request("/halves").respond_with_handler(lambda request: Response(sent(), content_type="text/html"))
    blocked = "<p id=first>one</p><script src=/script></script><p id=second>two</p>"
    httpserver.expect_request("/blocked").respond_with_data(blocked, content_type="text/html")
    httpserver.expect_request("/script").respond_with_handler(script)
    yield gate
    gate.set()


async def opens(page: Page, path: str) -> bool:
    await page.goto(page.url + path)
    return await page.locator("#second").count() == 1


async def looks(page: Page, path: str) -> bool:
    async with looking_at(page, page.url + path, Addresses("", {})) as other:
        return await other.locator("#second").count() == 1


@pytest.mark.parametrize("path", ["halves", "blocked"])
@pytest.mark.parametrize("found", [opens, looks])
async def test_a_document_that_is_not_whole_is_a_failure_and_no_score(
    visit: Visit, halves: threading.Event, found: Callable[[Page, str], Awaitable[bool]], path: str
) -> None:
    config = BrowserConfig(screenshots=False, settle_seconds=0.2, answer_seconds=0.5)
    async with asyncio.timeout(30), visit("", config=config, evaluator=judged(lambda page: found(page, path))) as (env, _):
        with pytest.raises(
            EnvironmentFailure, match=rf"the page http.*/{path} was still loading after 0\.5 s: raise browser\.answer_seconds"
        ):
            await env.evaluate(OUTCOME)


@pytest.mark.parametrize("found", [opens, looks])
async def test_an_evaluator_waits_until_a_document_is_whole(
    visit: Visit, httpserver: HTTPServer, halves: threading.Event, monkeypatch: pytest.MonkeyPatch, found: Found
) -> None:
    monkeypatch.setattr(settle, "LOAD_SECONDS", 0.1)

    async def later(page: Page) -> bool:
        asyncio.get_running_loop().call_later(1.2, halves.set)  # more than a third of `answer_seconds`, in which agents are shown a part
        return await found(page, "halves")  # type: ignore[call-arg]

    async with asyncio.timeout(30), visit("", config=BRIEF, evaluator=judged(later)) as (env, _):
        assert (await env.evaluate(OUTCOME)).success


async def test_an_evaluator_reads_the_address_that_the_page_has(visit: Visit) -> None:
    """Playwright hears of a document on a connection of its own, which a busy machine may serve later."""

    async def at_home(page: Page) -> bool:
        return page.url.startswith("http")

    async with asyncio.timeout(30), visit("", config=BRIEF, evaluator=judged(at_home)) as (env, _):
        page, frame = env.page._impl_obj, env.page.main_frame._impl_obj  # type: ignore[attr-defined]
        told, frame._url = frame._url, "about:blank"

        def hear() -> None:
            frame._url = told
            page.emit("framenavigated", frame)

        asyncio.get_running_loop().call_later(0.3, hear)
        assert (await env.evaluate(OUTCOME)).success


async def test_a_page_that_the_agent_left_while_it_was_loading_is_not_judged(visit: Visit, halves: threading.Event) -> None:
    async def last(page: Page) -> bool:
        return await page.locator("#second").count() == 1

    config = BrowserConfig(screenshots=False, settle_seconds=0.2, answer_seconds=3.0)
    async with asyncio.timeout(30), visit("<a href=/halves>Go</a>", config=config, evaluator=judged(last)) as (env, seen):
        await do(env, f"click [{find(seen, 'Go').id}]")
        with pytest.raises(EnvironmentFailure, match="/halves was still loading after 3 s"):
            await env.evaluate(OUTCOME)


@pytest.mark.parametrize(("target", "said"), [("file", "Download is starting"), ("held", "net::ERR_ABORTED|Timeout")])
async def test_a_target_without_a_page_is_a_failure_that_says_so(visit: Visit, held: threading.Event, target: str, said: str) -> None:
    async def shown(page: Page) -> bool:
        async with looking_at(page, page.url + target, Addresses("", {})):
            return True

    async with asyncio.timeout(40), visit("", config=BRIEF, evaluator=judged(shown)) as (env, _):
        with pytest.raises(EnvironmentFailure, match=said):
            await env.evaluate(OUTCOME)


async def test_a_target_that_wants_a_log_in_is_looked_at(visit: Visit, httpserver: HTTPServer) -> None:
    answer = Response("<p>No", status=401, headers={"WWW-Authenticate": "Basic realm=x"}, content_type="text/html")
    httpserver.expect_request("/closed").respond_with_response(answer)

    async def shown(page: Page) -> bool:
        async with looking_at(page, page.url + "closed", Addresses("", {})) as other:
            return "No" in await other.content()

    async with asyncio.timeout(20), visit("", config=BRIEF, evaluator=judged(shown)) as (env, _):
        assert (await env.evaluate(OUTCOME)).success


async def test_waiting_for_a_page_that_polls_to_go_idle_is_a_fault_of_the_evaluator(visit: Visit, httpserver: HTTPServer) -> None:
    def late(_: Request) -> Response:
        threading.Event().wait(0.2)
        return Response("")

    httpserver.expect_request("/poll").respond_with_handler(late)

    async def idle(page: Page) -> bool:
        await page.wait_for_load_state("networkidle", timeout=1500)
        return True

    page = "<button>Ready</button><script>const poll = () => fetch('/poll').then(poll); poll()</script>"
    async with asyncio.timeout(60), visit(page, config=BRIEF, evaluator=judged(idle)) as (env, _):
        with pytest.raises(EvaluatorError, match="goes on loading: wait for an element"):
            await env.evaluate(OUTCOME)
