"""Pages that are too large to be read as a whole: agents see the beginning, are told so, and can act there."""

from __future__ import annotations

import pytest
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup, launch
from exact.environments.browser.launch import pipe
from exact.environments.browser.observe import capture
from exact.observation import Observation
from exact.task import Task
from tests.environments.browser.pages import find

pytestmark = pytest.mark.asyncio(loop_scope="session")
MANY = 20_000
CONFIG = BrowserConfig(screenshots=False, width=600, height=400)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count a page as large from 300 elements on."""
    monkeypatch.setattr(capture, "MOST_ELEMENTS", 300)
    monkeypatch.setattr(capture, "MOST_CHARACTERS", MANY)


NOTE = "exact shows the beginning of this page only"
ADD = "document.body.appendChild(document.createElement('{}'))"
PAGES = {
    "a text": f"document.body.append('word '.repeat({MANY}))",
    "texts": f"for (let n = 0; n < 200; n++) {ADD.format('p')}.textContent = 'word '.repeat(100)",
    "elements": f"for (let n = 0; n < 4000; n++) {ADD.format('i')}",
    "a hidden text": f"const e = {ADD.format('p')}; e.hidden = true; e.textContent = 'w'.repeat({MANY})",
    "a name": f"document.querySelector('button').ariaLabel = 't'.repeat({MANY + 1})",
    "names that repeat": f"{ADD.format('p')}.id = 's'; s.textContent = 'word '.repeat(400);"
    f"for (let n = 0; n < 50; n++) {ADD.format('button')}.setAttribute('aria-labelledby', 's')",
    "names in names": "let e = document.body; for (let n = 0; n < 90; n++) { e = e.appendChild(document.createElement('div'));"
    "e.setAttribute('role', 'button'); e.append('word '.repeat(9)) }",
    "a title": f"document.title = 'T'.repeat({MANY + 1})",
    "a value": f"{ADD.format('input')}.value = 'v'.repeat({MANY + 1})",
    "a long field": f"{ADD.format('textarea')}.value = 'v '.repeat({MANY})",
    "options": f"{ADD.format('select')}.innerHTML = '<option>o</option>'.repeat(400)",
    "a shadow": f"{ADD.format('div')}.attachShadow({{mode: 'open'}}).append('word '.repeat({MANY}))",
    "shadows in shadows": "let e = document.body; for (let n = 0; n < 9; n++) { e = e.appendChild(document.createElement('div'))"
    f".attachShadow({{mode: 'open'}}); e.append('word '.repeat({MANY // 40})) }}",
    "a closed shadow": f"{ADD.format('div')}.attachShadow({{mode: 'closed'}}).append('word '.repeat({MANY}))",
    "a frame": f"{ADD.format('iframe')}.contentDocument.write('<p>' + 'word '.repeat({MANY}));"
    "const d = document.querySelector('iframe').contentDocument; d.close()",
}


async def begin(environment: BrowserEnvironment, server: HTTPServer, script: str) -> Observation:
    page = f"<!doctype html><title>Large</title><body><button onclick='this.textContent = ++n'>Go</button><script>n = 0; {script}</script>"
    server.clear()
    server.expect_request("/").respond_with_data(page, content_type="text/html")
    return await environment.reset(Task(id="large/page", instruction="", start=server.url_for("/")))


async def test_of_a_page_that_is_too_large_the_beginning_is_shown_and_works(browser: Browser, httpserver: HTTPServer) -> None:
    wrong: dict[str, str] = {}
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as environment:
        for name, script in PAGES.items():
            seen = await begin(environment, httpserver, script)
            go = next(each for each in seen.elements if each.role == "button")
            step = await environment.step(environment.actions.parse(f"click [{go.id}]"))
            after = step.observation and step.observation.element(go.id)
            if NOTE not in seen.text or len(seen.text) > 130_000 or not after or "1" not in await environment.page.inner_text("button"):
                wrong[name] = f"{len(seen.text)} {seen.text[:300]} {after}"
    assert not wrong


async def test_a_page_below_the_limits_is_read_as_a_whole(browser: Browser, httpserver: HTTPServer) -> None:
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as environment:
        seen = await begin(environment, httpserver, "document.body.append('word '.repeat(3000))")
        assert NOTE not in seen.text
        assert len(seen.text) > 15_000


async def test_a_page_is_read_as_a_whole_again_once_it_is_small(browser: Browser, httpserver: HTTPServer) -> None:
    async with BrowserFactory(browser, PageSetup(), CONFIG, isolated=False).open(simulation=False) as environment:
        seen = await begin(environment, httpserver, f"{PAGES['texts']}; document.querySelector('button').onclick = () => document"
                           ".querySelectorAll('p').forEach(each => each.remove())")  # fmt: skip
        assert NOTE in seen.text
        step = await environment.step(environment.actions.parse(f"click [{find(seen, 'Go').id}]"))
        assert step.observation is not None
        assert NOTE not in step.observation.text


async def test_the_beginning_hides_what_the_page_hides_and_what_is_masked(browser: Browser, httpserver: HTTPServer) -> None:
    config = BrowserConfig(screenshots=False, width=600, height=400, mask=(".secret",))
    setup = PageSetup(hidden=("#unseen",))
    script = (
        "document.body.insertAdjacentHTML('beforeend', '<p class=secret>4711</p><p id=unseen>unseen</p><p hidden>gone</p><p>plain</p>"
        "<input type=password value=hunter2>' + '<i></i>'.repeat(400))"
    )
    async with BrowserFactory(browser, setup, config, isolated=False).open(simulation=False) as environment:
        seen = await begin(environment, httpserver, script)
        assert NOTE in seen.text
        assert "plain" in seen.text
        for text in ("4711", "unseen", "gone", "hunter2"):
            assert text not in seen.text


@pytest.mark.parametrize(
    "script",
    [
        "document.body.dataset.x = 'v'.repeat(1e6)",
        f"for (let n = 0; n < 50; n++) {ADD.format('a')}.href = '#' + n + 'v'.repeat(1e4)",
        "document.head.insertAdjacentHTML('beforeend', `<style>i::before {content: '${'c'.repeat(1e4)}'}</style>`);"
        "document.body.insertAdjacentHTML('beforeend', '<i>i</i>'.repeat(60))",
    ],
    ids=["attribute", "addresses", "style sheet"],
)
async def test_an_answer_that_is_too_large_does_not_arrive(monkeypatch: pytest.MonkeyPatch, httpserver: HTTPServer, script: str) -> None:
    monkeypatch.setattr(pipe, "MOST_BYTES", 300_000)
    config = BrowserConfig(screenshots=False, width=600, height=400)
    async with launch(config) as small, BrowserFactory(small, PageSetup(), config, isolated=False).open(simulation=False) as environment:
        seen = await begin(environment, httpserver, f"{script}; setTimeout(() => console.log('x'.repeat(1e6)))")
        assert "more than the browser could hand over" in seen.text
        step = await environment.step(environment.actions.parse(f"click [{find(seen, 'Go').id}]"))
        assert step.observation is not None
        assert find(step.observation, "1")
