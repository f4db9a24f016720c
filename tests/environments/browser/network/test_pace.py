"""How often a site is asked."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from types import SimpleNamespace

import msgspec
import pytest
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.base import Environment
from exact.environments.browser import Browser, BrowserFactory, PageSetup
from exact.environments.browser.launch.options import context_options, user_agent
from exact.environments.browser.network import pace as module
from exact.environments.browser.network.message import BrowserMessage
from exact.environments.browser.network.pace import Allowance, Pace, Turns
from exact.task import Task
from tests.environments.browser.network.test_harmless import SITE, gate

PLAIN = BrowserConfig(screenshots=False)
LINK = "<a href=/>Next</a>"


async def test_a_context_that_has_many_requests_lets_others_have_their_turn() -> None:
    begun = list[str]()
    turns = Turns[str](begun.append)
    for number in range(100):
        turns.add("flood", f"flood {number}")
    turns.add("quiet", "quiet")
    assert len(begun) < 20 and begun[-1] == "quiet" and len(turns.waiting) > 80
    while turns.waiting:  # noqa: ASYNC110 - each turn of the event loop counts
        await asyncio.sleep(0)
    assert [each for each in begun if each != "quiet"] == [f"flood {number}" for number in range(100)]


def test_an_allowance_grows_again(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    subject = Allowance(3, 2.0)
    assert [subject.take() for _ in range(4)] == [True, True, True, False]
    now += 0.6
    assert [subject.take() for _ in range(2)] == [True, False]
    now += 1000
    assert [subject.take() for _ in range(4)] == [True, True, True, False]


async def test_a_request_beyond_the_allowed_number_waits_for_the_minute_to_pass() -> None:
    module_minute = module.MINUTE
    module.MINUTE = 0.2
    try:
        subject, clock = Pace(requests=3), asyncio.get_running_loop().time
        began = clock()
        for _ in range(4):
            await subject.turn(SITE)
        assert clock() - began >= 0.19
        await subject.turn("http://other.test")
        assert clock() - began < 0.39, "another origin has its own count"
    finally:
        module.MINUTE = module_minute


async def test_pages_of_simulations_are_counted_by_origin_and_anew_for_each_attempt() -> None:
    pace = Pace(pages=2)
    policy = gate("http://other.test", parts={"pace": pace}, counts_pages=True)
    page = lambda url: BrowserMessage("GET", url, is_document=True, kind="Document")  # noqa: E731
    refused = [(await policy.admit(page(f"{SITE}/{n}"), policy.decide(page(f"{SITE}/{n}")))).refused for n in range(3)]
    assert refused[:2] == ["", ""] and "opened 2 pages" in refused[2]
    assert not (await policy.admit(page("http://other.test/"), policy.decide(page("http://other.test/")))).refused
    pace.begin()
    assert not (await policy.admit(page(f"{SITE}/4"), policy.decide(page(f"{SITE}/4")))).refused


async def test_what_is_no_page_and_what_the_live_environment_opens_does_not_count() -> None:
    page, data = BrowserMessage("GET", f"{SITE}/a", is_document=True), BrowserMessage("GET", f"{SITE}/data")
    for counts, sent in ((False, (page, page, page)), (True, (page, data, data))):
        policy = gate(parts={"pace": Pace(pages=1)}, counts_pages=counts)
        for request in sent:
            assert not (await policy.admit(request, policy.decide(request))).refused


def test_the_user_agent_names_whom_to_ask() -> None:
    assert not user_agent(BrowserConfig())
    assert user_agent(BrowserConfig(contact="ops@example.org")).endswith("; +ops@example.org)")
    assert user_agent(BrowserConfig(contact="ops@example.org", user_agent="Mine")) == "Mine"
    assert "exact-agent/" in context_options(BrowserConfig(contact="x"), ())["user_agent"]


async def opened(stack: AsyncExitStack, browser: Browser, server: HTTPServer, **settings: object) -> Environment:
    """Open a simulation with these settings on a page with a link to itself."""
    server.expect_request("/").respond_with_data(LINK, content_type="text/html")
    factory = BrowserFactory(browser, PageSetup(), msgspec.structs.replace(PLAIN, **settings), isolated=False)  # type: ignore[arg-type]
    environment = await stack.enter_async_context(factory.open(simulation=True))
    await environment.reset(Task(id="test/pace", instruction="", start=server.url_for("/")))
    return environment


@pytest.mark.asyncio(loop_scope="session")
async def test_the_setting_limits_the_pages_of_a_simulation(browser: Browser, httpserver: HTTPServer) -> None:
    async with AsyncExitStack() as stack:
        environment = await opened(stack, browser, httpserver, pages=2)
        effects = [each for _ in range(3) for each in (await environment.step(environment.actions.parse("click [1]"))).effects]
    assert [each.kind for each in effects if "opened 2 pages" in each.detail]
    assert sum(request.path == "/" for request, _ in httpserver.log) <= 2


@pytest.mark.asyncio(loop_scope="session")
async def test_the_setting_limits_the_requests_of_a_minute(
    browser: Browser, httpserver: HTTPServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MINUTE", 2.0)
    clock = asyncio.get_running_loop().time
    async with AsyncExitStack() as stack:
        began = clock()
        environment = await opened(stack, browser, httpserver, requests_per_minute=2)
        for _ in range(3):
            await environment.step(environment.actions.parse("click [1]"))
    assert clock() - began >= 2.0, "four requests of two a minute"


@pytest.mark.asyncio(loop_scope="session")
async def test_the_setting_names_whom_to_ask_in_each_request(browser: Browser, httpserver: HTTPServer) -> None:
    async with AsyncExitStack() as stack:
        await opened(stack, browser, httpserver, contact="ops@example.org")
    assert {request.headers["User-Agent"] for request, _ in httpserver.log} == {user_agent(BrowserConfig(contact="ops@example.org"))}
