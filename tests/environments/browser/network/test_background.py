"""What pages send by themselves, in a real browser: it is no write of the agent, and a search does not send it."""

from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from exact.environments.base import Transition
from exact.environments.sites.site import Outside
from tests.conftest import Visit
from tests.environments.browser.pages import do, find

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRAFT = """<label>Text <input oninput="fetch('/draft', {method: 'POST', body: this.value}).then(answer => answer.json())
.then(() => { said.textContent = 'Draft saved' }, () => { said.textContent = 'Draft lost' })"></label><p id=said>-</p>"""


def posted(server: HTTPServer) -> list[str]:
    return [request.path for request, _ in server.log if request.method == "POST"]


def writes(step: Transition) -> list[str]:
    return [effect.url.rpartition("/")[2] for effect in step.effects if effect.is_blocked or effect.is_write]


def accept(server: HTTPServer, *paths: str) -> None:
    for path in paths:
        server.expect_request(path, method="POST").respond_with_json({})


async def test_telemetry_on_a_timer_is_none_of_the_agents_writes(visit: Visit, httpserver: HTTPServer) -> None:
    page = """<button onclick="this.textContent = 'Gone'">Go</button>
    <script>let n = 0; const tick = () => navigator.sendBeacon('/telemetry', `tick=${++n}`); tick(); setInterval(tick, 50)</script>"""
    async with visit(page, simulation=True) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert not writes(step) and find(step.observation, "Gone")
        assert any(effect.kind == "blocked" for effect in step.effects) and not posted(httpserver)


async def test_preferences_posted_when_a_page_loads_do_not_end_the_search_there(visit: Visit, httpserver: HTTPServer) -> None:
    page = """<script>fetch('/views', {method: 'POST', body: 'page=two'})</script>
    <button onclick="fetch('/like', {method: 'POST'})">Like</button>"""
    httpserver.expect_request("/two").respond_with_data(f"<title>Two</title>{page}", content_type="text/html")
    async with visit("<a href=/two>Next</a>", simulation=True) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Next').id}]")
        assert not writes(step) and step.observation is not None and not posted(httpserver)
        assert writes(await do(env, f"click [{find(step.observation, 'Like').id}]")) == ["like"]


@pytest.mark.parametrize("declared", [True, False])
async def test_a_draft_is_a_write_unless_the_site_declares_it(visit: Visit, httpserver: HTTPServer, declared: bool) -> None:
    outside = Outside(harmless=("/draft$",) if declared else ())
    async with visit(DRAFT, simulation=True, outside=outside) as (env, seen):
        step = await do(env, f'fill [{find(seen, "Text").id}] "a"')
        assert set(writes(step)) == (set() if declared else {"draft"})
        assert find(step.observation, "Draft saved" if declared else "Draft lost") and not posted(httpserver)


async def test_the_live_environment_sends_a_draft_that_does_not_count(visit: Visit, httpserver: HTTPServer) -> None:
    accept(httpserver, "/draft")
    async with visit(DRAFT, outside=Outside(harmless=("/draft$",))) as (env, seen):
        assert not writes(await do(env, f'fill [{find(seen, "Text").id}] "a"')) and "/draft" in posted(httpserver)


async def test_a_post_that_only_reads_is_sent_while_searching(visit: Visit, httpserver: HTTPServer) -> None:
    httpserver.expect_request("/find", method="POST").respond_with_data("<title>Found</title><p>Seven", content_type="text/html")
    async with visit(
        "<form method=post action=/find><button>Find</button></form>", simulation=True, outside=Outside(reads=("/find$",))
    ) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Find').id}]")
        assert not writes(step) and find(step.observation, "Seven")


@pytest.mark.parametrize("simulation", [True, False])
async def test_links_that_write_are_not_followed_while_searching(visit: Visit, httpserver: HTTPServer, simulation: bool) -> None:
    httpserver.expect_request("/logout").respond_with_data("<title>Bye</title>Bye", content_type="text/html")
    httpserver.expect_request("/item").respond_with_data("<title>Deleted</title><a href=/logout>Log out</a>", content_type="text/html")
    page = "<a href='/item?delete=3'>Delete</a> <a href=/logout>Log out</a>"
    async with visit(page, simulation=simulation, outside=Outside(writes=("[?&]delete=",))) as (env, seen):
        step = await do(env, f"click [{find(seen, 'Delete').id}]")
        assert writes(step) == ["item?delete=3"] and step.observation is not None
        assert writes(await do(env, f"click [{find(step.observation, 'Log out').id}]")) == ["logout"]
        assert [request.path for request, _ in httpserver.log[1:]] == ([] if simulation else ["/item", "/logout"])


async def test_a_draft_saved_by_a_page_that_is_left_does_not_end_the_search_there(visit: Visit, httpserver: HTTPServer) -> None:
    page = """<a href=/two>Next</a><button onclick="navigator.sendBeacon('/vote', 'up')">Vote</button>
    <script>addEventListener('pagehide', () => navigator.sendBeacon('/draft', 'text=a'))</script>"""
    httpserver.expect_request("/two").respond_with_data("<title>Two</title><p>Second", content_type="text/html")
    async with visit(page, simulation=True) as (env, seen):
        assert writes(await do(env, f"click [{find(seen, 'Vote').id}]")) == ["vote"]
        step = await do(env, f"click [{find(seen, 'Next').id}]")
        assert not writes(step) and find(step.observation, "Second") and not posted(httpserver)


@pytest.mark.parametrize("header", ["Content-Security-Policy", "Content-Security-Policy-Report-Only"])
@pytest.mark.parametrize("violation", ["<b style='color:red'>Shown</b>", "<b>Shown</b><img src=/x.png>"])
async def test_a_report_of_a_policy_violation_is_none_of_the_agents_writes(
    visit: Visit, httpserver: HTTPServer, header: str, violation: str
) -> None:
    script = f"go.onclick = () => {{ said.innerHTML = `{violation}`; go.remove() }}"
    httpserver.expect_request("/script.js").respond_with_data(script, content_type="text/javascript")
    page = "<title>Two</title><button id=go>Go</button><p id=said></p><script src=/script.js></script>"
    policy = {header: "style-src 'self'; img-src 'none'; report-uri /reports"}
    httpserver.expect_request("/two").respond_with_data(page, content_type="text/html", headers=policy)
    async with visit("<a href=/two>Next</a>", simulation=True) as (env, seen):
        seen = (await do(env, f"click [{find(seen, 'Next').id}]")).observation
        step = await do(env, f"click [{find(seen, 'Go').id}]")
        assert [effect.kind for effect in step.effects if effect.url.endswith("/reports")] == ["blocked"], "it was sent by that action"
        assert not writes(step) and find(step.observation, "Shown") and not posted(httpserver)
