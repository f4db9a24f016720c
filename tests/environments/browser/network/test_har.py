"""The HAR of a real browser: complete, in order, and without credentials."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.environments.browser.environment import BrowserEnvironment
from exact.environments.browser.network import har as module
from exact.environments.browser.network.har import HarRecorder, Kept
from exact.environments.browser.page.setup import Beginning
from exact.task import Task

pytestmark = pytest.mark.asyncio(loop_scope="session")
PAGE = """<link rel=stylesheet href=/a.css><form method=post action=/send><input name=title value="a b">
<input name=csrf_token value=hunter2 type=hidden><button>Send</button></form><a href=/json>JSON</a>
<button onclick="fetch('/star', {method: 'POST'})">Star</button>
<button onclick="fetch('/star', {method: 'POST'}).then(answer => answer.text()).then(() => location = '/done')">Star and go</button>"""


class Recorded:
    """An environment whose requests are recorded once it is prepared."""

    def __init__(self, environment: BrowserEnvironment, recorders: list[HarRecorder], base: str) -> None:
        self.environment, self.recorders, self.base = environment, recorders, base

    async def begin(self) -> None:
        await self.environment.reset(Task(id="test/har", instruction="", start=f"{self.base}/"))

    async def do(self, verb: str, *arguments: str) -> None:
        await self.environment.step(self.environment.actions.action(verb, *arguments))

    async def click(self, name: str) -> None:
        await self.do("click", next(each.id for each in self.environment.observation.elements if each.name == name))

    async def lines(self) -> list[str]:
        """Return method, path and status of each entry."""
        return [
            f"{each['request']['method']} {each['request']['url'].removeprefix(self.base)} {each['response']['status']}"
            for each in await self.entries()
        ]

    async def entries(self) -> list[dict[str, Any]]:
        return await self.recorders[-1].entries()


@pytest_asyncio.fixture(loop_scope="session")
async def recorded(browser: Browser, httpserver: HTTPServer) -> AsyncIterator[Recorded]:
    def answer(request: Request) -> Response:
        if request.path == "/send":
            return Response(status=302, headers={"Location": "/done", "Set-Cookie": "sid=hunter2"})
        if request.path == "/star":
            return Response('{"star_count": 3}', content_type="application/json")
        return Response(PAGE if request.path == "/" else request.path, content_type="text/html", headers={"Set-Cookie": "sid=hunter2"})

    for path in ("/", "/login", "/send", "/done", "/star", "/json", "/a.css"):
        httpserver.expect_request(path).respond_with_handler(answer)
    recorders, base = list[HarRecorder](), f"http://localhost:{httpserver.port}"

    async def prepare(beginning: Beginning) -> None:
        await beginning.page.goto(f"{base}/login")
        recorders.append(await HarRecorder.of(beginning.context, Kept(json=True)))

    environments = BrowserFactory(browser, PageSetup(prepare=prepare), BrowserConfig(screenshots=False), isolated=False)
    async with environments.open(simulation=False) as environment:
        yield Recorded(environment, recorders, base)


async def test_requests_are_recorded_in_order_from_the_start_page_on(recorded: Recorded) -> None:
    await recorded.begin()
    await recorded.click("Star")
    await recorded.click("Send")
    assert await recorded.lines() == ["GET / 200", "POST /star 200", "POST /send 302", "GET /done 200"]
    entries = await recorded.entries()
    assert entries[1]["response"]["content"]["text"] == '{"star_count": 3}'
    assert entries[2]["request"]["postData"]["text"] == "title=a+b&csrf_token=scrubbed"
    assert entries[2]["response"]["redirectURL"] == "/done" and "hunter2" not in str(entries)
    headers = {each["name"].lower(): each["value"] for each in entries[2]["request"]["headers"]}
    assert headers["referer"] == f"{recorded.base}/" and headers["sec-fetch-dest"] == "document" and "cookie" not in headers
    assert "text/html" in headers["accept"]


async def test_an_answer_is_kept_where_the_page_goes_on_at_once(recorded: Recorded) -> None:
    await recorded.begin()
    await recorded.click("Star and go")
    await recorded.environment.page.wait_for_url("**/done")
    bodies = {each["request"]["url"]: each["response"]["content"].get("text") for each in await recorded.entries()}
    assert bodies[f"{recorded.base}/star"] == '{"star_count": 3}'


async def test_a_reset_begins_a_new_record(recorded: Recorded) -> None:
    for _ in range(2):
        await recorded.begin()
        await recorded.click("JSON")
        assert await recorded.lines() == ["GET / 200", "GET /json 200"]


async def test_requests_without_an_answer_have_the_status_minus_one(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LATE", 0.3)
    await recorded.begin()
    await recorded.environment.page.evaluate("fetch('http://localhost:9/dummy_bin', {method: 'POST', mode: 'no-cors'}).catch(String)")
    lines = await recorded.lines()
    assert lines == ["GET / 200", "POST http://localhost:9/dummy_bin -1"]
