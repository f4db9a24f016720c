"""Where an environment may go, and what it may send. The task's origin is `http://localhost:port`; `127.0.0.1` is elsewhere."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

import pytest
from playwright.async_api import CDPSession, Error
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.config import BrowserConfig
from exact.environments.base import SideEffect
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.environments.browser.network import contexts
from exact.environments.browser.network.effects import MOST_REFUSED
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.rules import Decision, PolicyRules
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Task
from tests.conftest import CONFIG, Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")


def elsewhere(server: HTTPServer, path: str) -> str:
    return f"http://127.0.0.1:{server.port}{path}"


def requested(server: HTTPServer) -> list[str]:
    return [f"{request.method} {request.path}" for request, _ in server.log]


def blocked(effects: tuple[SideEffect, ...]) -> list[tuple[str, str]]:
    return [(effect.method, effect.url) for effect in effects if effect.kind == "blocked"]


@pytest.mark.parametrize("status", [299, 418, 420, 430, 444, 450, 499, 509, 520, 599])
async def test_a_status_without_a_name_is_answered(visit: Visit, httpserver: HTTPServer, status: int) -> None:
    """A page with it is shown, and a script's request gets it."""
    httpserver.expect_request("/odd").respond_with_data("<p>Strange weather", status=status, content_type="text/html")
    script = "fetch('/odd').then(got => out.textContent = 'got ' + got.status)"
    async with visit(f'<a href=/odd>Odd</a><p id=out></p><button onclick="{script}">Ask</button>') as (env, seen):
        assert f"got {status}" in (await look(env, f"click [{find(seen, 'Ask').id}]")).text
        assert "Strange weather" in (await look(env, f"click [{find(seen, 'Odd').id}]")).text


@pytest.mark.parametrize("head", ["430 W\xebird \x01", "200 \x7f", "299 ", "200 OK\r\nBad Name: x", "404 No\r\nX-Odd: \xe9\x02"])
async def test_a_strange_head_of_an_answer_keeps_no_page_waiting(browser: Browser, head: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        text = "<p>Strange weather"
        writer.write(
            f"HTTP/1.1 {head}\r\nContent-Type: text/html\r\nContent-Length: {len(text)}\r\nConnection: close\r\n\r\n{text}".encode(
                "latin-1"
            )
        )
        await writer.drain()
        writer.close()

    async with (
        await asyncio.start_server(serve, "127.0.0.1", 0) as server,
        BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as env,
    ):
        port = server.sockets[0].getsockname()[1]
        seen = await env.reset(Task(id="x", instruction="", start=f"http://127.0.0.1:{port}/"))
        assert "Strange weather" in seen.text


async def test_a_link_to_another_origin_is_refused_and_recorded(visit: Visit, httpserver: HTTPServer) -> None:
    url = elsewhere(httpserver, "/away")
    async with visit(f"<a href='{url}'>Away</a>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Away').id}]")
        assert blocked(step.effects) == [("GET", url)]
        assert step.observation is not None
        assert step.observation.url == seen.url
        assert "GET /away" not in requested(httpserver)


@pytest.mark.parametrize("hops", [1, 2, 3])
async def test_every_hop_of_a_redirect_is_judged(visit: Visit, httpserver: HTTPServer, hops: int) -> None:
    url = elsewhere(httpserver, "/away")
    for hop in range(hops):
        target = url if hop == hops - 1 else f"/hop{hop + 1}"
        httpserver.expect_request(f"/hop{hop}").respond_with_response(Response(status=302, headers={"Location": target}))
    async with visit("<a href=/hop0>Away</a>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Away').id}]")
        assert blocked(step.effects) == [("GET", url)]
        assert step.observation is not None and step.observation.url == seen.url
        assert f"GET /hop{hops - 1}" in requested(httpserver)
        assert "GET /away" not in requested(httpserver)


async def test_a_popup_to_another_origin_never_opens(visit: Visit, httpserver: HTTPServer) -> None:
    url = elsewhere(httpserver, "/away")
    async with visit(f"<button onclick=\"window.open('{url}')\">Away</button>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Away').id}]")
        assert blocked(step.effects) == [("GET", url)]
        after = await look(env, "wait")
        assert (after.url, after.tabs) == (seen.url, ())
        assert "GET /away" not in requested(httpserver)


async def test_a_popup_within_the_task_becomes_the_present_page(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/two").respond_with_data("<p>Second", content_type="text/html")
    async with visit("<button onclick=\"window.open('/two')\">More</button>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'More').id}]")
        assert find(step.observation, "Second")
        assert step.observation is not None and step.observation.tabs == (seen.url,)
        assert [effect.kind for effect in step.effects] == ["tab"]
        assert (await look(env, "go_back")).url == seen.url


async def test_frames_pictures_and_fetches_of_other_origins_are_refused(visit: Visit, httpserver: HTTPServer) -> None:
    urls = [elsewhere(httpserver, path) for path in ("/frame", "/image", "/fetch")]
    page = f"<iframe src='{urls[0]}'></iframe><img src='{urls[1]}'><script>fetch('{urls[2]}').catch(() => 0)</script>"
    httpserver.expect_request("/page").respond_with_data(page, content_type="text/html")
    async with visit("<a href=/page>Go</a>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert {url for _, url in blocked(step.effects)} == set(urls)
        assert requested(httpserver)[-1] == "GET /page"


async def test_an_allowed_origin_is_visited(visit: Visit, httpserver: HTTPServer) -> None:
    url = elsewhere(httpserver, "/away")
    httpserver.expect_request("/away").respond_with_data("<p>There", content_type="text/html")
    config = BrowserConfig(screenshots=False, allow_origins=(elsewhere(httpserver, ""),))
    async with visit(f"<a href='{url}'>Away</a>", config=config) as (env, seen):
        assert find(await look(env, f"click [{find(seen, 'Away').id}]"), "There")


async def test_a_blocked_navigation_to_another_origin_says_why(visit: Visit, httpserver: HTTPServer) -> None:
    async with visit("<p>Here") as (env, _):
        for url in (
            elsewhere(httpserver, "/"),
            "file:///etc/passwd",
            "data:text/html,hi",
            "chrome://version",
            "view-source:http://a.test/",
        ):
            with pytest.raises(ActionError, match=r"cannot go to|is no URL"):
                await do(env, f'goto "{url}"')
        assert "Here" in (await look(env, "wait")).text


async def test_a_start_page_that_leads_elsewhere_is_an_error_with_the_way_out(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]
) -> None:
    httpserver.expect_request("/").respond_with_response(Response(status=302, headers={"Location": elsewhere(httpserver, "/away")}))
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as env:
        with pytest.raises(EnvironmentFailure, match=f"allow http://127.0.0.1:{httpserver.port} with --allow-origin"):
            await env.reset(task_at())


FORM = "<form method=post action=/order><button>Order</button></form>"
FETCH = "<button onclick=\"fetch('/order', {method: 'POST', body: 'x'}).catch(() => 0)\">Order</button>"
BEACON = "<button onclick=\"navigator.sendBeacon('/order', 'x')\">Order</button>"


@pytest.mark.parametrize("page", [FORM, FETCH, BEACON])
async def test_a_write_while_exploring_is_aborted_and_recorded(visit: Visit, httpserver: HTTPServer, page: str) -> None:
    async with visit(page, simulation=True) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Order').id}]")
        assert blocked(step.effects) == [("POST", f"{seen.url}order")]
        assert not any(effect.is_write for effect in step.effects)
        assert "POST /order" not in requested(httpserver)


@pytest.mark.parametrize("page", [FORM, FETCH])
@pytest.mark.parametrize("open_as", [{"simulation": False}, {"simulation": True, "isolated": True}])
async def test_a_write_is_sent_and_recorded_where_it_counts_or_can_be_undone(
    visit: Visit, httpserver: HTTPServer, page: str, open_as: dict[str, bool]
) -> None:
    httpserver.expect_request("/order").respond_with_data("<p>Thanks", status=201, content_type="text/html")
    async with visit(page, **open_as) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Order').id}]")
        reach: Literal["sandbox", "outside"] = "sandbox" if open_as.get("isolated") else "outside"
        assert step.effects == (SideEffect(kind="request", method="POST", url=f"{seen.url}order", status=201, reach=reach),)
        assert step.effects[0].is_write
        assert "POST /order" in requested(httpserver)


FIELDS = "<input name=title value=s3cr3t><input name=body value=s3cr3t>"
UPLOAD = f"<form method=post action=/order enctype=multipart/form-data>{FIELDS}<input type=file name=picture><button>Order</button></form>"
JSON = """<button onclick="fetch('/order', {method: 'POST', headers: {'content-type': 'application/json'},
    body: JSON.stringify({title: 's3cr3t', body: 's3cr3t'})}).catch(() => 0)">Order</button>"""


@pytest.mark.parametrize(
    ("page", "names"),
    [
        (f"<form method=post action=/order>{FIELDS}<button>Order</button></form>", ("title", "body")),
        (UPLOAD, ("title", "body", "picture")),
        (JSON, ("title", "body")),
        (BEACON, ()),
    ],
)
@pytest.mark.parametrize("simulation", [True, False])
async def test_a_write_names_its_fields_and_no_value_whether_it_was_sent_or_blocked(
    visit: Visit, httpserver: HTTPServer, page: str, names: tuple[str, ...], simulation: bool
) -> None:
    httpserver.expect_request("/order").respond_with_data("<p>Thanks", content_type="text/html")
    async with visit(page, simulation=simulation) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Order').id}]")
        (effect,) = step.effects
        assert effect.fields == names and effect.is_blocked is simulation
        assert "s3cr3t" not in repr(step.effects)


@pytest.mark.parametrize("simulation", [True, False])
@pytest.mark.parametrize("page", [BEACON, "<a href=#sent ping=/order>Order</a>"], ids=["beacon", "ping"])
async def test_a_step_names_a_beacon_that_is_looked_at_late(
    visit: Visit, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch, page: str, simulation: bool
) -> None:
    looked = Gate.judge

    async def late(self: Gate, message: BrowserMessage) -> Decision:
        if message.is_beacon:
            await asyncio.sleep(0.5)
        return await looked(self, message)

    monkeypatch.setattr(Gate, "judge", late)
    httpserver.expect_request("/order").respond_with_data("")
    async with visit(page, simulation=simulation) as (env, seen):
        (effect,) = (await do(env, f"click [{find(seen, 'Order').id}]")).effects
        assert effect.url.endswith("/order") and effect.is_blocked is simulation and not effect.late


@pytest.mark.parametrize("page", [FORM, FETCH, BEACON])
async def test_only_the_step_that_sent_it_reports_a_write_without_an_answer(visit: Visit, httpserver: HTTPServer, page: str) -> None:
    gate, asked = threading.Event(), threading.Event()

    def answer(_: object) -> Response:
        asked.set()
        gate.wait(20)
        return Response("<p>Thanks", content_type="text/html")

    httpserver.expect_request("/order").respond_with_handler(answer)
    config = BrowserConfig(screenshots=False, settle_seconds=0.3, answer_seconds=3.0)
    async with visit(page, config=config) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Order').id}]")
        assert step.effects == (SideEffect(kind="request", method="POST", url=f"{seen.url}order", reach="outside"),)
        await asyncio.to_thread(asked.wait, 20)
        gate.set()
        async with asyncio.timeout(20):
            while env.episode.tabs.gate.log._pending or not env.episode.tabs.present.traffic.is_idle:  # noqa: ASYNC110 (nobody tells)
                await asyncio.sleep(0.01)
        assert (await do(env, "wait")).effects == (await do(env, "wait")).effects == ()


async def test_each_redirect_of_a_write_is_reported_with_its_own_status(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/order").respond_with_response(Response(status=307, headers={"Location": "/there"}))
    httpserver.expect_request("/there").respond_with_data("<p>Thanks", status=201, content_type="text/html")
    async with visit(FORM) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Order').id}]")
        assert [(effect.url, effect.status) for effect in step.effects] == [(f"{seen.url}order", 307), (f"{seen.url}there", 201)]


async def test_a_write_in_a_frame_or_worker_is_aborted_too(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/w.js").respond_with_data("fetch('/order', {method: 'PUT'})", content_type="text/javascript")
    page = """<iframe srcdoc="<script>setTimeout(() => fetch('/order', {method: 'DELETE'}), 50)</script>"></iframe>
    <button onclick="new Worker('/w.js')">Go</button>"""
    async with visit(page, simulation=True) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        seen_methods = {method for method, _ in blocked(step.effects)}
        while not {"PUT"} <= seen_methods:
            seen_methods |= {method for method, _ in blocked((await do(env, "wait")).effects)}
        assert not {"PUT /order", "DELETE /order"} & set(requested(httpserver))


@pytest.mark.parametrize("where", ["page", "worker"])
async def test_a_websocket_to_another_origin_is_never_opened(visit: Visit, httpserver: HTTPServer, where: str) -> None:
    code = f"try {{ new WebSocket('ws://127.0.0.1:{httpserver.port}/feed').onerror = () => 0 }} catch {{}}"
    if where == "worker":
        code = f"new Worker(URL.createObjectURL(new Blob([`{code}`])))"
    async with visit(f'<button onclick="{code}">Go</button>') as (env, seen):
        await do(env, f"click [{find(seen, 'Go').id}]")
        await do(env, "wait")
        assert "GET /feed" not in requested(httpserver)


async def test_a_websocket_of_the_task_is_opened_unless_exploring(visit: Visit, httpserver: HTTPServer) -> None:
    page = "<script>new WebSocket(`ws://${location.host}/feed`).onerror = () => document.title = 'failed'</script>"
    for simulation, reached in ((True, False), (False, True)):
        async with visit(page, simulation=simulation) as (env, _):
            title = ""
            while title != "failed":
                title = (await look(env, "wait")).title
            assert ("GET /feed" in requested(httpserver)) is reached


async def test_two_environments_in_one_browser_are_judged_apart(visit: Visit, httpserver: HTTPServer) -> None:
    async with visit(FETCH, simulation=True) as (scratch, seen), visit(FETCH, simulation=False) as (live, _):
        order = f"click [{find(seen, 'Order').id}]"
        first, second = await asyncio.gather(do(scratch, order), do(live, order))
        assert [effect.kind for effect in first.effects] == ["blocked"]
        assert [effect.kind for effect in second.effects] == ["request"]


async def test_a_dialog_is_accepted_and_recorded(visit: Visit) -> None:
    config = BrowserConfig(screenshots=False, dialogs="accept")
    async with visit("<button onclick=\"document.title = confirm('Really?')\">Go</button>", config=config) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert [(effect.kind, effect.detail) for effect in step.effects] == [("dialog", "Really?")]
        assert step.observation is not None and step.observation.title == "true"


async def test_a_download_is_recorded_and_the_page_stays(visit: Visit, httpserver: HTTPServer) -> None:
    headers = {"Content-Disposition": "attachment; filename=report.csv"}
    httpserver.expect_request("/report").respond_with_data("a,b", headers=headers, content_type="text/csv")
    async with visit("<a href=/report>Get</a>") as (env, seen):
        step = await do(env, f"click [{find(seen, 'Get').id}]")
        assert step.observation is not None and step.observation.url == seen.url
        assert [(effect.kind, effect.detail) for effect in step.effects] == [("download", "report.csv")]


async def test_a_slow_write_is_waited_for_with_its_status(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/order").respond_with_handler(lambda _: Response(status=500))
    async with visit(FETCH) as (env, seen):
        assert [effect.status for effect in (await do(env, f"click [{find(seen, 'Order').id}]")).effects] == [500]


class Session:
    """A browser's own session that is never answered by a browser."""

    def __init__(self) -> None:
        self.answers = asyncio.Queue[tuple[str, str]]()
        """Commands about requests, each with the request's id."""
        self.handlers: dict[str, Callable[[dict[str, Any]], object]] = {}

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        self.handlers[event] = handler

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        if params and "requestId" in params:
            self.answers.put_nowait((method, params["requestId"]))
        return {}

    def asks(self, id: str, frame: str, **more: Any) -> None:
        """Pause a request of a frame."""
        request = {"method": "GET", "url": "http://shop.test/x", "headers": {}} | more
        self.handlers["Fetch.requestPaused"]({"requestId": id, "frameId": frame, "resourceType": "Fetch", "request": request})


class Pages:
    """Frames of a context, of which some are known only when it is asked."""

    def __init__(self, *frames: str, asked: Callable[[], Awaitable[set[str]]] | None = None) -> None:
        self.known, self.asked = set(frames), asked
        self.ended = list[str]()

    def has(self, frame: str) -> bool:
        return frame in self.known

    def tab_of(self, frame: str) -> str:
        return frame

    async def ask(self) -> None:
        if self.asked:
            self.known |= await self.asked()

    def end(self, why: str) -> None:
        self.ended.append(why)


async def guarded(**pages: Pages) -> Session:
    """Return an interceptor's session with a policy for each context."""
    session = Session()
    subject = RequestInterceptor(cast("CDPSession", session))
    await subject.start()
    for context, frames in pages.items():
        subject.register(context, Gate(PolicyRules(allowed=("http://shop.test",), writable=("http://shop.test",)), frames))
    return session


async def stands_still() -> set[str]:
    await asyncio.sleep(60)
    return set()


async def has_gone() -> set[str]:
    raise Error("Target page, context or browser has been closed")


async def told() -> set[str]:
    await asyncio.sleep(0)
    return {"new"}


@pytest.mark.parametrize("other", [stands_still, has_gone])
async def test_a_request_is_decided_although_the_page_of_another_environment_hangs_or_closes(
    other: Callable[[], Awaitable[set[str]]],
) -> None:
    session = await guarded(b=Pages(asked=other), a=Pages(asked=told))
    session.asks("1", "new")
    assert await asyncio.wait_for(session.answers.get(), 5) == ("Fetch.continueRequest", "1")


async def test_a_known_frame_is_not_looked_up() -> None:
    async def never() -> set[str]:
        raise AssertionError("asked")

    session = await guarded(b=Pages(asked=never), a=Pages("told of", asked=never))
    session.asks("1", "told of")
    assert await asyncio.wait_for(session.answers.get(), 5) == ("Fetch.continueRequest", "1")


@pytest.mark.parametrize("other", [stands_still, has_gone])
async def test_a_request_of_an_unknown_frame_is_refused_and_not_dropped(
    monkeypatch: pytest.MonkeyPatch, other: Callable[[], Awaitable[set[str]]]
) -> None:
    monkeypatch.setattr(contexts, "_FRAME_TIMEOUT", 0.1)
    session = await guarded(b=Pages(asked=other))
    session.asks("1", "nobody's")
    assert await asyncio.wait_for(session.answers.get(), 5) == ("Fetch.failRequest", "1")


async def test_many_requests_of_unknown_frames_are_refused_at_once_and_delay_no_other() -> None:
    session = await guarded(b=Pages(asked=stands_still), a=Pages("known"))
    for number in range(1000):
        session.asks(f"u{number}", f"gone {number}")
    session.asks("1", "known")
    answered = [await asyncio.wait_for(session.answers.get(), 5) for _ in range(1001 - 64)]
    assert ("Fetch.continueRequest", "1") in answered


async def test_of_a_flood_of_refused_requests_the_rest_stays_unanswered_until_the_next_step() -> None:
    session = await guarded(a=Pages("known"))
    for number in range(MOST_REFUSED + 200):
        session.asks(str(number), "known", url="http://other.test/x")
    session.asks("own", "known")
    answered = [await asyncio.wait_for(session.answers.get(), 5) for _ in range(MOST_REFUSED + 1)]
    assert ("Fetch.continueRequest", "own") in answered and session.answers.empty()


async def test_a_page_that_sends_refused_requests_without_end_is_ended_and_its_requests_are_looked_at_no_more() -> None:
    pages = Pages("known")
    session = await guarded(a=pages)
    for number in range(1200):
        session.asks(str(number), "known", url="http://other.test/x")
    for _ in range(MOST_REFUSED):
        await asyncio.wait_for(session.answers.get(), 5)
    assert pages.ended == ["it sent more than 1,000 requests that are refused"]
    before = asyncio.all_tasks()
    session.asks("later", "known")
    assert asyncio.all_tasks() == before and session.answers.empty()


async def test_a_guard_that_ends_leaves_nothing_waiting() -> None:
    """An environment is closed while its interceptor is paused: waiting requests are dropped."""

    class Silent:
        def on(self, name: str, handler: Callable[[Any], None]) -> None:
            self.__dict__[name] = handler

        async def send(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            return {}

    line = Silent()
    subject = RequestInterceptor(cast(CDPSession, line))
    await subject.start()
    before = asyncio.all_tasks()
    subject.pause()
    line.__dict__["Fetch.requestPaused"]({"requestId": "1"})
    left = asyncio.all_tasks() - before
    assert subject.busy and len(left) == 1
    subject.stop()
    await asyncio.wait(left)
    assert not subject.busy and all(task.cancelled() for task in left)
