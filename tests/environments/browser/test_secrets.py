"""Placeholders of secrets are filled at the secrets' own origins only."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from pytest_httpserver import HTTPServer

from exact.config import BrowserConfig, LoginConfig
from exact.environments.browser import Browser, BrowserEnvironment, BrowserFactory, PageSetup
from exact.environments.sites.site import Account, Outside
from exact.errors import InfrastructureError, SecretRefused, UsageError
from exact.task import Outcome, Score, Task

from .pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

WORD = "s3cret-Word!"
FIELDS = "<input aria-label=Word type=password><input aria-label=Plain><div contenteditable aria-label=Note role=textbox>-</div>"


class Pair:
    """Two allowed origins of one server: `own`, where the task starts, and `other`."""

    def __init__(self, server: HTTPServer) -> None:
        self.own, self.other = f"http://localhost:{server.port}", f"http://127.0.0.1:{server.port}"
        server.expect_request("/").respond_with_data(FIELDS, content_type="text/html")
        server.expect_request("/frame").respond_with_data(f"{FIELDS}<iframe src='{self.other}/'></iframe>", content_type="text/html")
        thief = "<input id=t autofocus><script>setInterval(() => document.getElementById('t').focus(), 1)</script>"
        server.expect_request("/thief").respond_with_data(thief, content_type="text/html")
        server.expect_request("/robbed").respond_with_data(f"{FIELDS}<iframe src='{self.other}/thief'></iframe>", content_type="text/html")
        inside = f"{FIELDS}<iframe srcdoc='<input aria-label=Inner>'></iframe><iframe sandbox srcdoc='<input aria-label=Boxed>'></iframe>"
        server.expect_request("/inside").respond_with_data(inside, content_type="text/html")
        send = "<button onclick=\"fetch('/sent?n=' + Math.random(), {method: 'POST', body: 'x'})\">Send</button>"
        leak = f"<button onclick=\"fetch('{self.other}/got?' + Math.random(), {{mode: 'no-cors'}}).catch(() => 0)\">Leak</button>"
        cookie = {"Set-Cookie": "visit=1"}
        server.expect_request("/work").respond_with_data(f"<title>Work</title>{send}", content_type="text/html", headers=cookie)
        server.expect_request("/leak").respond_with_data(f"{FIELDS}{leak}", content_type="text/html")
        for path in ("/sent", "/got"):
            server.expect_request(path).respond_with_data("ok")
        server.expect_request("/prompt").respond_with_data("<button onclick=\"prompt('Word?')\">Ask</button>", content_type="text/html")

    def task(self, path: str = "/") -> Task:
        return Task(id="pair", instruction="Look.", start=self.own + path, origins=(self.other,))


@pytest.fixture
def pair(httpserver: HTTPServer) -> Pair:
    return Pair(httpserver)


@asynccontextmanager
async def opened(browser: Browser, *, simulation: bool = True, **login: object) -> AsyncIterator[BrowserEnvironment]:
    config = BrowserConfig(screenshots=False, login=LoginConfig(secrets={"word": WORD}, **login))  # type: ignore[arg-type]
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=simulation) as environment:
        yield environment


async def values(environment: BrowserEnvironment) -> list[str]:
    found = [await frame.evaluate("[...document.querySelectorAll('input')].map(each => each.value)") for frame in environment.page.frames]
    return [value for each in found for value in each]


@pytest.mark.parametrize("simulation", [True, False])
@pytest.mark.parametrize("written", ["<secret:word>", "<word>", "is <secret:word>!"])
async def test_a_secret_is_typed_at_its_own_origin_only(browser: Browser, pair: Pair, simulation: bool, written: str) -> None:
    async with opened(browser, simulation=simulation) as environment:
        seen = await environment.reset(pair.task())
        typed = await look(environment, f'fill [{find(seen, "Plain").id}] "{written}"')
        assert find(typed, "Plain").value == written.replace("<word>", "<secret:word>")
        assert WORD in (await values(environment))[1]
        seen = await look(environment, f'goto "{pair.other}/"')
        own, other = pair.own.replace(".", r"\."), pair.other.replace(".", r"\.")
        for action in (f'fill [{find(seen, "Word").id}] "{written}"', f'fill [{find(seen, "Note").id}] "{written}"'):
            with pytest.raises(SecretRefused, match=rf"^<secret:word> belongs to {own}: it is not typed at {other}; [^\n]*$"):
                await do(environment, action)
        await do(environment, f"click [{find(seen, 'Word').id}]")
        with pytest.raises(SecretRefused):
            await do(environment, f'type "{written}"')
        assert not any(await values(environment))


async def test_a_frame_of_another_origin_gets_no_secret(browser: Browser, pair: Pair) -> None:
    async with opened(browser) as environment:
        seen = await environment.reset(pair.task("/frame"))
        own, foreign = (each for each in seen.elements if each.name == "Word")
        with pytest.raises(SecretRefused):
            await do(environment, f'fill [{foreign.id}] "<secret:word>"')
        await do(environment, f"click [{foreign.id}]")
        with pytest.raises(SecretRefused):
            await do(environment, 'type "<secret:word>"')
        await do(environment, f'fill [{own.id}] "<secret:word>"')
        await do(environment, f"click [{find(seen, 'Plain').id}]")
        await do(environment, 'type "<secret:word>"')
        assert await values(environment) == [WORD, WORD, "", ""]


async def test_a_frame_that_takes_the_focus_meanwhile_gets_no_secret(browser: Browser, pair: Pair) -> None:
    async with opened(browser) as environment:
        seen = await environment.reset(pair.task("/robbed"))
        await do(environment, f'fill [{find(seen, "Word").id}] "<secret:word>"')
        assert (await values(environment))[::2] == [WORD, ""]


async def test_a_document_without_an_address_has_the_origin_of_its_page_unless_it_is_sandboxed(browser: Browser, pair: Pair) -> None:
    async with opened(browser) as environment:
        seen = await environment.reset(pair.task("/inside"))
        with pytest.raises(SecretRefused, match="typed at null"):
            await do(environment, f'fill [{find(seen, "Boxed").id}] "<word>"')
        typed = await look(environment, f'fill [{find(seen, "Inner").id}] "<word>"')
        assert find(typed, "Inner").value == "<secret:word>"


async def test_a_dialog_of_another_origin_gets_no_secret(browser: Browser, pair: Pair) -> None:
    async with opened(browser) as environment:
        seen = await environment.reset(pair.task("/prompt"))
        asked = await look(environment, f"click [{find(seen, 'Ask').id}]")
        assert (await look(environment, f'fill [{find(asked, "answer").id}] "<word>"')).text.count("<secret:word>") == 1
        await do(environment, 'answer "<secret:word>"')
        seen = await look(environment, f'goto "{pair.other}/prompt"')
        asked = await look(environment, f"click [{find(seen, 'Ask').id}]")
        for action in (f'fill [{find(asked, "answer").id}] "<word>"', 'answer "<secret:word>"'):
            with pytest.raises(SecretRefused):
                await do(environment, action)
        await do(environment, "dismiss")


async def test_after_typing_the_agent_works_at_another_site_comes_back_and_goes_there_again(browser: Browser, pair: Pair) -> None:
    async with opened(browser, simulation=False) as environment:
        seen = await environment.reset(pair.task())
        await do(environment, f'fill [{find(seen, "Word").id}] "<word>"')
        for _ in range(2):
            seen = await look(environment, f'goto "{pair.other}/work"')
            sent = await do(environment, f"click [{find(seen, 'Send').id}]")
            assert [(effect.method, effect.status) for effect in sent.effects] == [("POST", 200)]
            await look(environment, f'goto "{pair.own}/"')


async def test_what_a_page_knows_is_part_of_a_snapshot(browser: Browser, pair: Pair, httpserver: HTTPServer) -> None:
    config = BrowserConfig(screenshots=False, page_snapshots=True, login=LoginConfig(secrets={"word": WORD}))
    factory = BrowserFactory(browser, PageSetup(), config, isolated=False)
    async with factory.open(simulation=True) as one, factory.open(simulation=True) as two:
        seen = await one.reset(pair.task("/leak"))
        before = await one.snapshot()
        typed = await look(one, f'fill [{find(seen, "Word").id}] "<word>"')
        after = await one.snapshot()
        assert [each.url for each in (await do(one, f"click [{find(typed, 'Leak').id}]")).effects] == [f"{pair.other}/"]
        for snapshot, arrives in ((after, False), (before, True)):
            httpserver.log.clear()
            seen = await two.restore(snapshot)
            await do(two, f"click [{find(seen, 'Leak').id}]")
            assert any(request.path == "/got" for request, _ in httpserver.log) == arrives


async def test_the_name_of_a_window_is_not_carried_to_another_site(browser: Browser, pair: Pair) -> None:
    async with opened(browser) as environment:
        await environment.reset(pair.task())
        await environment.page.evaluate("window.name = 'told'")
        await look(environment, f'goto "{pair.own}/work"')
        assert await environment.page.evaluate("window.name") == "told"
        await look(environment, f'goto "{pair.other}/work"')
        assert await environment.page.evaluate("window.name") == ""


async def test_secrets_may_be_bound_to_further_origins(browser: Browser, pair: Pair) -> None:
    async with opened(browser, secret_origins=(pair.other.upper().replace("HTTP", "http") + "/",)) as environment:
        seen = await environment.reset(pair.task())
        with pytest.raises(SecretRefused):
            await do(environment, f'fill [{find(seen, "Word").id}] "<secret:word>"')
        seen = await look(environment, f'goto "{pair.other}/"')
        await do(environment, f'fill [{find(seen, "Word").id}] "<secret:word>"')
        assert (await values(environment))[0] == WORD
    with pytest.raises(UsageError, match="'shop' is no origin: write https://host"):
        async with opened(browser, secret_origins=("shop",)) as environment:
            await environment.reset(pair.task())


async def test_an_accounts_values_are_bound_to_its_origins(browser: Browser, pair: Pair) -> None:
    outside = Outside(accounts=(Account(name="ann", fields={"word": WORD}, origins=(pair.other,)),))
    factory = BrowserFactory(browser, PageSetup(), BrowserConfig(screenshots=False), isolated=False, outside=outside)
    async with factory.open(simulation=True) as environment:
        seen = await environment.reset(pair.task())
        with pytest.raises(SecretRefused, match=f"^<secret:word> belongs to {pair.other}: it is not typed at {pair.own};"):
            await do(environment, f'fill [{find(seen, "Word").id}] "<secret:word>"')


ECHO = f"""<body style="margin: 0; background: white"><style>p, div, input, button, span {{ position: absolute; left: 20px; height: 30px;
margin: 0; color: #d00; font: 20px monospace }}</style>
<p style="top: 10px">{WORD}</p>
<p style="top: 60px">is {WORD.upper()} ok</p>
<input style="top: 110px" value="{WORD}">
<input style="top: 160px" type=password value="of-a-user">
<div style="top: 210px"><b>{WORD[:5]}</b><i>{WORD[5:]}</i></div>
<div style="top: 260px" aria-hidden=true>{WORD}</div>
<input style="top: 310px" type=submit value="{WORD}">
<p style="top: 360px" class=x></p><style>.x::after {{ content: "{WORD}" }}</style>
<p style="top: 500px">public text</p>"""
ROWS = (10, 60, 110, 160, 210, 260, 310, 360)


@pytest.mark.parametrize("scale", [1.0, 2.0])
async def test_screenshots_show_no_secret(browser: Browser, httpserver: HTTPServer, scale: float) -> None:
    httpserver.expect_request("/").respond_with_data(ECHO, content_type="text/html")
    config = BrowserConfig(width=640, height=600, scale=scale, login=LoginConfig(secrets={"word": WORD}))
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=True) as environment:
        seen = await environment.reset(Task(id="echo", instruction="", start=f"http://localhost:{httpserver.port}/"))
    assert seen.screenshot is not None
    with Image.open(io.BytesIO(seen.screenshot)) as image:
        red = (np.asarray(image.convert("RGB")).astype(int) @ [1, -1, -1]) > 60
    pixels = red.shape[1] / config.width
    shown = [bool(red[round(top * pixels) : round((top + 32) * pixels)].any()) for top in (*ROWS, 500)]
    assert shown == [False] * len(ROWS) + [True], shown


@asynccontextmanager
async def with_session(
    browser: Browser, server: HTTPServer, folder: Path, goal: str = "", **more: Any
) -> AsyncIterator[tuple[BrowserEnvironment, list[str | None]]]:
    """An environment at a page that shows the values of its cookies, and the answers that its evaluator gets."""
    answers: list[str | None] = []

    async def judge(page: object, outcome: Outcome) -> Score:
        answers.append(outcome.answer)
        return Score(value=0.0, success=False, reason=f"it is {outcome.answer}")

    values = {"lastOrder": "ORD12345678", "wikiUserName": "Hanna%20Voss"}
    cookies = [{"name": name, "value": value, "domain": "localhost", "path": "/"} for name, value in values.items()]
    (folder / "state.json").write_text(json.dumps({"cookies": cookies}))
    server.expect_request("/").respond_with_data("<p>ORD12345678 of Hanna Voss</p><input aria-label=Find>", content_type="text/html")
    config = BrowserConfig(screenshots=False, login=LoginConfig(state=str(folder / "state.json")), **more)
    async with BrowserFactory(browser, PageSetup(), config, isolated=False, evaluator=judge).open(simulation=False) as environment:
        await environment.reset(Task(id="t", instruction=goal, start=f"http://localhost:{server.port}/"))
        yield environment, answers


async def test_an_evaluator_gets_the_text_behind_a_mask_and_its_reason_is_masked(
    browser: Browser, httpserver: HTTPServer, tmp_path: Path
) -> None:
    async with with_session(browser, httpserver, tmp_path) as (environment, answers):
        assert "<secret:cookie lastOrder> of Hanna Voss" in environment.observation.text
        score = await environment.evaluate(Outcome(actions=(), answer="<secret:cookie lastOrder>, of Hanna Voss"))
        assert answers == ["ORD12345678, of Hanna Voss"] and score.reason == "it is <secret:cookie lastOrder>, of Hanna Voss"


@pytest.mark.parametrize("answer", ["<secret:shop.word>", "It is (masked)."])
async def test_an_answer_whose_mask_stands_for_nothing_known_is_not_scored(
    browser: Browser, httpserver: HTTPServer, tmp_path: Path, answer: str
) -> None:
    async with with_session(browser, httpserver, tmp_path, mask=("#none",)) as (environment, answers):
        with pytest.raises(InfrastructureError, match=r"the answer holds .*: it is not scored"):
            await environment.evaluate(Outcome(actions=(), answer=answer))
        assert not answers


async def test_no_agent_types_a_value_of_the_session(browser: Browser, httpserver: HTTPServer, tmp_path: Path) -> None:
    async with with_session(browser, httpserver, tmp_path) as (environment, _):
        with pytest.raises(SecretRefused, match=r"^<secret:cookie lastOrder> belongs to the log-in itself"):
            await do(environment, f'fill [{find(environment.observation, "Find").id}] "<secret:cookie lastOrder>"')
        assert await values(environment) == [""]


async def test_what_the_goal_states_is_not_masked(browser: Browser, httpserver: HTTPServer, tmp_path: Path) -> None:
    async with with_session(browser, httpserver, tmp_path, goal="Cancel ORD12345678.") as (environment, _):
        assert "ORD12345678 of Hanna Voss" in environment.observation.text


async def test_a_short_user_name_is_masked_by_itself_and_words_stay(browser: Browser, httpserver: HTTPServer) -> None:
    page = "<h1>Annual planning</h1><p>Hello ann.</p><input aria-label=User value=ann><a href=/>banner by ann</a>"
    httpserver.expect_request("/").respond_with_data(page, content_type="text/html")
    config = BrowserConfig(screenshots=False, login=LoginConfig(secrets={"user": "ann"}))
    async with BrowserFactory(browser, PageSetup(), config, isolated=False).open(simulation=True) as environment:
        start = f"http://localhost:{httpserver.port}/"
        seen = await environment.reset(Task(id="t", instruction="Open the planning channel.", start=start))
        assert [each.name for each in seen.elements if each.role != "textbox"] == [
            "Annual planning",
            "Hello <secret:user>.",
            "banner by <secret:user>",
        ]
        assert find(seen, "User").value == "<secret:user>"
        seen = await environment.reset(Task(id="t", instruction="Show the posts by ann.", start=start))
        assert "Hello ann." in seen.text
