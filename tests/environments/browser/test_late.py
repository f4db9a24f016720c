"""Requests that leave after the step of the action that caused them belong to that action."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import BrowserConfig
from exact.environments.base import Transition
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.task import Task

from .pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")

PAGE = """<title>Draft</title><input aria-label=Note><button id=other>Other</button><button id=slow>Slow</button><script>
const post = path => fetch(path, {method: 'POST'});
let timer;
document.querySelector('input').oninput = () => {
  clearTimeout(timer);
  timer = setTimeout(() => SEND, 900);
};
other.onclick = () => post('/other');
slow.onclick = () => {
  for (const end = performance.now() + 1200; performance.now() < end; );
  setTimeout(() => post('/slow'), 450);
};
</script>"""
SENDERS = {
    "fetch": "post('/autosave')",
    "request": "{ const r = new XMLHttpRequest(); r.open('POST', '/autosave'); r.send(); }",
    "beacon": "navigator.sendBeacon('/autosave')",
    "chain": "setTimeout(() => post('/autosave'), 300)",
}


class Drafts:
    """A site whose page saves a draft a while after each input."""

    def __init__(self, server: HTTPServer, sender: str) -> None:
        self.saved = threading.Event()
        self.url = server.url_for("/")
        server.expect_request("/").respond_with_data(PAGE.replace("SEND", SENDERS[sender]), content_type="text/html")
        server.expect_request("/autosave").respond_with_handler(self._save)
        server.expect_request("/other").respond_with_data("")
        server.expect_request("/slow").respond_with_data("")

    def _save(self, request: Request) -> Response:
        self.saved.set()
        return Response()


@pytest.fixture(params=list(SENDERS))
def drafts(httpserver: HTTPServer, request: pytest.FixtureRequest) -> Drafts:
    return Drafts(httpserver, request.param)


@pytest_asyncio.fixture(loop_scope="session")
async def environment(browser: Browser, drafts: Drafts) -> AsyncIterator[BrowserEnvironment]:
    async with BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=False).open(simulation=False) as opened:
        await opened.reset(Task(id="drafts", instruction="Write.", start=drafts.url))
        yield opened


async def step(environment: BrowserEnvironment, verb: str, name: str, *more: str) -> Transition:
    action = " ".join((verb, f"[{find(environment.observation, name).id}]", *more))
    return await environment.step(environment.actions.parse(action))


def sent(transition: Transition) -> list[tuple[str, bool]]:
    return [(effect.url.rpartition("/")[2], effect.late) for effect in transition.effects]


async def test_what_leaves_between_two_steps_is_of_the_step_before(environment: BrowserEnvironment, drafts: Drafts) -> None:
    assert sent(await step(environment, "fill", "Note", '"half"')) == []
    await asyncio.to_thread(drafts.saved.wait, 10)
    assert sent(await step(environment, "click", "Other")) == [("autosave", True), ("other", False)]
    assert sent(await step(environment, "click", "Other")) == [("other", False)]


async def test_what_leaves_while_the_next_action_is_carried_out_is_of_the_step_before(
    environment: BrowserEnvironment, drafts: Drafts
) -> None:
    await step(environment, "fill", "Note", '"half"')
    assert sorted(sent(await step(environment, "click", "Slow"))) == [("autosave", True), ("slow", False)]


async def test_what_leaves_before_the_last_action_is_reported_with_it(environment: BrowserEnvironment, drafts: Drafts) -> None:
    await step(environment, "fill", "Note", '"half"')
    await asyncio.to_thread(drafts.saved.wait, 10)
    final = await environment.step(environment.actions.parse('stop "done"'))
    assert sent(final) == [("autosave", True)] and final.terminated
