"""How often a site is asked."""

from __future__ import annotations

import asyncio

from exact.config import BrowserConfig
from exact.environments.browser.launch.context import context_options, user_agent
from exact.environments.browser.network import pace as module
from exact.environments.browser.network.pace import Pace
from exact.environments.browser.network.policy import PageRequest, RequestPolicy
from tests.environments.browser.network.test_harmless import SITE, NoFrames


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
    policy = RequestPolicy((SITE, "http://other.test"), writes=False, frames=NoFrames())
    policy.pace, policy.counts_pages = Pace(pages=2), True
    page = lambda url: PageRequest("GET", url, is_document=True, kind="Document")  # noqa: E731
    refused = [(await policy.admit(page(f"{SITE}/{n}"), policy.decide(page(f"{SITE}/{n}")))).refused for n in range(3)]
    assert refused[:2] == ["", ""] and "opened 2 pages" in refused[2]
    assert not (await policy.admit(page("http://other.test/"), policy.decide(page("http://other.test/")))).refused
    policy.pace.begin()
    assert not (await policy.admit(page(f"{SITE}/4"), policy.decide(page(f"{SITE}/4")))).refused


async def test_what_is_no_page_and_what_the_live_environment_opens_does_not_count() -> None:
    policy = RequestPolicy((SITE,), writes=False, frames=NoFrames())
    policy.pace = Pace(pages=1)
    page, data = PageRequest("GET", f"{SITE}/a", is_document=True), PageRequest("GET", f"{SITE}/data")
    for request in (page, page, page):
        assert not (await policy.admit(request, policy.decide(request))).refused
    policy.counts_pages = True
    for request in (page, data, data):
        assert not (await policy.admit(request, policy.decide(request))).refused


def test_the_user_agent_names_whom_to_ask() -> None:
    assert not user_agent(BrowserConfig())
    assert user_agent(BrowserConfig(contact="ops@example.org")).endswith("; +ops@example.org)")
    assert user_agent(BrowserConfig(contact="ops@example.org", user_agent="Mine")) == "Mine"
    assert "exact-agent/" in context_options(BrowserConfig(contact="x"), ())["user_agent"]
