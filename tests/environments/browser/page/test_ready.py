"""The first observation is that of a page which has booted, or says that the page stayed blank."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import msgspec
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from bench._booting import APPLICATIONS, READY, serve
from exact.config import BrowserConfig, LoginConfig
from exact.environments.browser import BrowserFactory, PageSetup
from exact.environments.browser.launch.browser import Browser
from exact.errors import EnvironmentFailure
from exact.task import Task
from exact.views.view import observation_text
from tests.conftest import Visit
from tests.environments.browser.pages import find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")
PICTURE = "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='90' height='90'><rect width='50' height='50'/></svg>"
HASTY = BrowserConfig(screenshots=False, settle_seconds=0.2)


@pytest.mark.parametrize("name", APPLICATIONS)
async def test_the_first_observation_of_an_application_that_boots_is_not_blank(
    browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task], name: str
) -> None:
    gate, asked = threading.Event(), threading.Event()
    serve(httpserver, APPLICATIONS[name], lambda: asked.set() or gate.is_set(), lambda: asked.set() or gate.wait(20))
    async with BrowserFactory(browser, PageSetup(), HASTY, isolated=True).open(simulation=False) as environment:
        for _ in range(2):  # causes that kept a page busy are learned the first time
            gate.clear()
            asked.clear()
            reset = asyncio.ensure_future(environment.reset(task_at()))
            assert await asyncio.to_thread(asked.wait, 10)
            assert not (await asyncio.wait([reset], timeout=0.8))[0], "it is handed over before it has booted"
            gate.set()
            seen = await reset
            assert seen.title == READY and not seen.note


async def test_a_page_that_stays_blank_is_handed_over_with_a_note(visit: Visit) -> None:
    page = (
        f"<canvas></canvas>{'<i></i>' * 3}<p aria-busy=true>Loading<script>setInterval(() => document.body.dataset.beat = 1, 60)</script>"
    )
    async with visit(page, config=msgspec.structs.replace(HASTY, start_seconds=0.5)) as (environment, seen):
        assert seen.note == "the page stayed blank for 0.5 s: it shows no text, control or picture"
        assert f"Note: {seen.note}" in observation_text(seen)
        assert msgspec.json.decode(msgspec.json.encode(seen), type=type(seen)).note == seen.note, "a journal has it"
        assert not (await look(environment, "wait")).note


@pytest.mark.parametrize("page", ["<div style='height:3000px'></div>", "<p style='opacity:0'>Not drawn", "<img src=/missing.png alt=''>"])
async def test_a_blank_page_that_nothing_changes_is_handed_over_at_once(visit: Visit, page: str) -> None:
    async with asyncio.timeout(20), visit(page, config=msgspec.structs.replace(HASTY, start_seconds=60)) as (_, seen):
        assert seen.note == "the page is blank, and nothing in it would change that: it shows no text, control or picture"


async def test_an_empty_start_page_is_empty_on_purpose(browser: Browser) -> None:
    async with BrowserFactory(browser, PageSetup(), HASTY, isolated=True).open(simulation=False) as environment:
        assert not (await environment.reset(Task(id="t", instruction="", start=""))).note


@pytest.mark.parametrize("shown", ["<button>Go</button>", "<p>News", f'<img src="{PICTURE}">', "<svg><rect width=90 height=90></svg>"])
async def test_a_page_that_shows_something_does_not_wait_for_a_frame_that_never_answers(
    visit: Visit, httpserver: HTTPServer, shown: str
) -> None:
    gate = threading.Event()
    httpserver.expect_request("/never").respond_with_handler(lambda _: Response(str(gate.wait(60))))
    try:
        page = f"{shown}<iframe hidden src=/never></iframe><script></script>"
        async with asyncio.timeout(20), visit(page, config=msgspec.structs.replace(HASTY, start_seconds=60)) as (_, seen):
            assert not seen.note
    finally:
        gate.set()


async def test_a_return_to_a_page_waits_until_it_has_booted(browser: Browser, httpserver: HTTPServer, task_at: Callable[..., Task]) -> None:
    gate = threading.Event()
    gate.set()
    serve(httpserver, APPLICATIONS["fetch, then render"], gate.is_set, lambda: gate.wait(20))
    config = msgspec.structs.replace(HASTY, page_snapshots=True)
    async with BrowserFactory(browser, PageSetup(), config, isolated=True).open(simulation=True) as environment:
        seen = await environment.reset(task_at())
        snapshot = await environment.snapshot()
        gate.clear()
        restore = asyncio.ensure_future(environment.restore(snapshot))
        assert not (await asyncio.wait([restore], timeout=0.8))[0], "it is handed over before it has booted"
        gate.set()
        assert (await restore).fingerprint == seen.fingerprint


async def test_a_page_of_a_paused_clock_boots_by_its_timers(visit: Visit) -> None:
    page = "<div id=root></div><script>setTimeout(() => root.innerHTML = '<button>Start</button>', 2000)</script>"
    async with visit(page, config=msgspec.structs.replace(HASTY, clock=100)) as (_, seen):
        assert find(seen, "Start")
    async with visit(page, config=msgspec.structs.replace(HASTY, clock=100, start_seconds=1)) as (_, seen):
        assert seen.note


async def test_the_proof_of_a_log_in_has_as_long_to_appear(visit: Visit, httpserver: HTTPServer) -> None:
    page = "<p>Hello<script>setTimeout(() => document.body.append('Log out'), 700)</script>"
    login = LoginConfig(proof="Log out")
    async with visit(page, config=msgspec.structs.replace(HASTY, login=login, start_seconds=20)) as (_, seen):
        assert "Log out" in seen.text
    with pytest.raises(EnvironmentFailure, match="not logged in"):
        async with visit(page, config=msgspec.structs.replace(HASTY, login=login, start_seconds=0.1)):
            pass
