"""A person takes part in a search by the live view: answers, stale answers, time-outs, tokens, and the next action."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.runner import Runner
from tests.e2e.sites.shop import serve
from tests.e2e.test_confirm import Orders, attempt, orders, questions
from tests.report.live.test_live import begun, journal_of, served, watching
from tests.runs.toys import config, toy_runner

pytestmark = pytest.mark.asyncio(loop_scope="session")


def asking(folder: Path, **browser: Any) -> Runner:
    """Return a run that asks before each action."""
    settings = config(
        search={"algorithm": "mcts", "iterations": 6, "k": 3}, limits={"actions": 2}, browser={"confirm": "always", **browser}
    )
    return toy_runner(folder, ToyFactory(form(2)), settings)


def answers(runner: Runner) -> list[ev.PersonAnswered]:
    return [event for event in read_journal(journal_of(runner)) if isinstance(event, ev.PersonAnswered)]


async def answer(page: Page, button: str = "Allow") -> None:
    """Answer the question that is shown, and wait until it is taken."""
    await expect(page.locator("#questions .question")).to_have_count(1)
    known = await page.evaluate("$('questions').dataset.known")
    await page.get_by_role("button", name=button).click()
    await expect(page.locator("#questions")).not_to_have_attribute("data-known", known)


async def test_an_action_is_allowed_and_another_refused_by_keyboard_alone(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r")
    running = await begun(runner)
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/r/0/") as page:
            for button in ("Allow", "Refuse"):
                await expect(page.locator("#questions .question")).to_have_count(1)
                await page.locator("#stop").focus()
                while await page.evaluate("document.activeElement.textContent") != button:
                    await page.keyboard.press("Tab")
                known = await page.evaluate("$('questions').dataset.known")
                await page.keyboard.press("Enter")
                await expect(page.locator("#questions")).not_to_have_attribute("data-known", known)
            (line,) = await running
            await expect(page.locator("#state")).to_have_text("ended")
            await expect(page.locator("#below")).to_contain_text("answered 'no'")
    first, second = answers(runner)
    assert (first.answer, first.touched, second.answer, second.touched) == ("yes", False, "no", True)
    assert first.by.startswith("a viewer at 127.0.0.1") and (line.status, line.score, line.touched) == ("judged", None, 1)


async def test_an_answer_to_an_earlier_question_is_refused(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r")
    running = await begun(runner)
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/r/0/") as page:
            await expect(page.locator("#questions .question")).to_have_count(1)
            stale = await page.evaluate("$('questions').dataset.known")
            await answer(page)
            await page.evaluate(f"order('allow', -1, {{question: '{stale}'}})")
            await expect(page.locator("#reply")).to_have_text("Refused: this question is answered already")
            await expect(page.locator("#questions .question")).to_have_count(1)
            await answer(page)
            await running
    assert [each.answer for each in answers(runner)] == ["yes", "yes"]


async def test_without_the_token_a_browser_looks_and_commands_nothing(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r", person_seconds=20)
    running = await begun(runner)
    with served(tmp_path, token="t" * 24, look_freely=True) as address:
        async with watching(chromium, f"{address}/r/0/") as page:
            await expect(page.locator("#state")).to_contain_text("this view wants its token")
            assert await page.locator("#questions .question").count() == 0 and not await page.locator("#handover").is_visible()
            await page.evaluate("order('stop')")
            await expect(page.locator("#reply")).to_contain_text("Refused: this view wants its token")
        async with watching(chromium, f"{address}/r/0/?token={'t' * 24}") as page:
            await answer(page)
            await answer(page)
            await running
    assert [each.answer for each in answers(runner)] == ["yes", "yes"]


async def test_a_question_that_nobody_answers_in_the_view_refuses(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r", person_seconds=0.4)
    with served(tmp_path):
        (line,) = await runner.run()
    assert all(each.answer is None for each in answers(runner)) and line.touched == 2
    assert all(step.refused == "no yes came in time" for step in read_journal(journal_of(runner)) if isinstance(step, ev.Committed))


async def test_the_next_action_is_offered_and_changed_and_the_report_says_who_did_it(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r")
    running = await begun(runner)
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/r/0/") as page:
            await expect(page.locator("#questions .question")).to_have_count(1)
            await page.get_by_role("button", name="Pause").click()
            await expect(page.locator("#reply")).to_have_text("Done: pause")
            await answer(page, "Refuse")
            await expect(page.locator("#state")).to_have_text("paused")
            await page.get_by_text("Take part").click()
            field = page.get_by_label("Next action")
            assert await page.locator("#candidates option").count() > 1 and await field.input_value()
            await field.fill('go "toggle B"')
            await field.press("Enter")
            await expect(page.locator("#reply")).to_have_text("Done: act")
            await page.get_by_label("Instruction").fill("Check B alone.")
            await page.get_by_role("button", name="Change it").click()
            await expect(page.locator("#reply")).to_have_text("Done: instruct")
            await page.get_by_role("button", name="Resume").click()
            await answer(page)
            (line,) = await running
            for said in ('gave the next action: go "toggle B"', "changed the instruction to: Check B alone.", "paused", "resumed"):
                await expect(page.locator("#below")).to_contain_text(said)
            await expect(page.locator("#below")).to_contain_text("this attempt has no benchmark score")
    committed = [event for event in read_journal(journal_of(runner)) if isinstance(event, ev.Committed)]
    assert committed[1].action == 'go "toggle B"' and not committed[1].refused and line.touched == 3 and line.score is None


async def test_the_live_view_shows_the_request_and_takes_an_answer_to_the_agents_question(
    executable: str, chromium: Browser, tmp_path: Path
) -> None:
    policy = Orders()
    policy.asks = True
    with serve(tmp_path / "shop.sqlite") as (shop, url):
        running = asyncio.ensure_future(attempt(tmp_path / "run", url, None, policy, ask_user=True, person_seconds=60))
        while not questions(tmp_path / "run"):
            await asyncio.wait({running}, timeout=0.2)
        with served(tmp_path) as address:
            async with watching(chromium, f"{address}/run/0/") as page:
                await expect(page.locator("#questions")).to_contain_text("The agent asks: For whom?")
                await page.get_by_label("Answer").fill("Bob")
                await page.keyboard.press("Enter")
                await expect(page.locator("#questions")).to_contain_text(f"Send this request? POST {url}/order")
                await expect(page.locator("#questions li")).to_have_text(["id: 1", "name: Bob"])
                await page.get_by_role("button", name="Allow").click()
                line, _ = await running
        assert orders(shop) == [(1, "Bob")] and line.touched == 1
