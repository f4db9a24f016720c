"""The list of the live view: what its rows tell, and what a person does from it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from exact.runs.journal import events as ev
from exact.runs.journal.commands import mailbox
from exact.runs.journal.file import read_journal
from tests.report.journals import DOWN, SHOP, Recorder, mixed_run, new_run
from tests.report.live.test_live import Gate, asked, begun, journal_of, own, searching, served, until, watching
from tests.report.live.test_person import answers, asking
from tests.report.test_head import DESKTOP, screen, within

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture
def tea(tmp_path: Path) -> Iterator[str]:
    """Serve ended attempts, an interrupted one, and one that a search works on with pictures."""
    mixed_run(tmp_path / "ended")
    run, settings = new_run(tmp_path / "tea", "shop/tea?seed=7", iterations=12)
    recorder = Recorder(run, run.manifest.tasks[0], settings, SHOP)
    recorder.begin()
    recorder.commit()
    left, settings = new_run(tmp_path / "left", "shop/tea?seed=8", iterations=12)
    broken = Recorder(left, left.manifest.tasks[0], settings, SHOP)
    broken.begin()
    broken.journal.close()
    with served(tmp_path) as address:
        yield address
    recorder.journal.close()


async def test_a_row_tells_state_task_score_time_money_last_action_and_picture(tea: str, chromium: Browser) -> None:
    async with watching(chromium, f"{tea}/") as page:
        searches, ended = page.locator('li[data-key="tea/0"]'), page.locator('li[data-key="ended/0"]')
        await expect(searches.locator(".ending")).to_have_text("Searching: 0 of 12 iterations")
        await expect(searches.locator(".reason")).to_contain_text("It looks for action 2")
        await expect(searches.locator(".last")).to_have_text('Last action click link "Green tea"')
        for words in ("shop/tea", "seed 7", "Buy two packs of green tea.", "Actions", "Time", "Money$"):
            await expect(searches).to_contain_text(words)
        assert str(await searches.locator("img").get_attribute("src")).startswith("data:image/")
        await expect(ended.locator(".ending")).to_have_text("Solved")
        for words in ("Score1.00", "Time41.3 s", "Money$0.0189", "Answer Order 4711"):
            await expect(ended).to_contain_text(words)
        await expect(page.locator('li[data-key="left/0"]')).to_contain_text("Interrupted")
        await expect(page.locator("#sum")).to_contain_text("1 searching")
        await expect(page.locator(".runs")).to_contain_text("1 of 5 solved, 1 not started")


FIRST = {
    "state": ".ending", "reason": ".reason", "answer": "p.answer", "cause": ".cause", "advice": ".way", "last action": ".last",
    "cost": ".money",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_a_person_looks_for_first_is_in_the_first_view_of_the_list(tea: str, chromium: Browser, scheme: str) -> None:
    page = await chromium.new_page(viewport=DESKTOP, color_scheme=scheme)  # type: ignore[arg-type]
    await page.goto(f"{tea}/")
    counts = {"state": 6, "reason": 5, "answer": 1, "cause": 1, "advice": 3, "last action": 6, "cost": 6}
    for name, selector in FIRST.items():
        found = await page.locator(f".attempts {selector}").all()
        assert len(found) == counts[name], name
        for each in found:
            assert within(await each.bounding_box(), screen(DESKTOP)), name
    await page.close()


async def test_rows_move_while_a_search_runs_and_an_ended_one_stays(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate(12)
    runner = searching(tmp_path / "run", gate, iterations=16)
    mixed_run(tmp_path / "tea")
    with served(tmp_path) as address:
        running = await begun(runner)
        async with watching(chromium, f"{address}/") as page:
            state = page.locator('li[data-key="run/0"] .ending')
            await expect(state).to_contain_text("of 16 iterations")
            before = await state.text_content()
            gate.let(4)
            await expect(state).not_to_have_text(str(before))
            assert await page.locator("li[data-key]").first.get_attribute("data-key") == "run/0"
            gate.let_all()
            (line,) = await running
            await expect(state).to_have_text("Solved" if line.score == 1 else "Not solved", timeout=15_000)
            await expect(page.locator('li[data-key="run/0"] .steering')).to_have_count(0)
            await expect(page.locator("#attempts > li")).to_have_count(5)


async def test_a_question_is_answered_from_the_list_by_keyboard_alone(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r")
    mixed_run(tmp_path / "tea")
    running = await begun(runner)
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/") as page:
            for button in ("Allow", "Refuse"):
                known = await asked_now(page)
                await expect(page.locator(".attempts > li").first).to_contain_text("Asks a person")
                await page.locator("#theme").focus()
                while await page.evaluate("document.activeElement.textContent") != button:
                    await page.keyboard.press("Tab")
                await page.keyboard.press("Enter")
                await taken(page, known)
            await running
    first, second = answers(runner)
    assert (first.answer, second.answer) == ("yes", "no") and first.by.startswith("a viewer at 127.0.0.1")


async def test_a_search_is_paused_steered_taken_over_and_stopped_from_the_list(tmp_path: Path, chromium: Browser) -> None:
    gate = Gate(12)
    runner = searching(tmp_path / "run", gate, iterations=2000)
    mixed_run(tmp_path / "tea")
    with served(tmp_path) as address:
        running = await begun(runner)
        async with watching(chromium, f"{address}/") as page:
            one = page.locator('li[data-key="run/0"]')
            reply = one.locator("[data-part=reply]")
            await one.get_by_text("Take part").click()
            field = one.get_by_label("Instruction")
            await field.fill("Tick B")
            gate.let(3)
            await field.press_sequentially(" alone.")  # the row is written anew meanwhile
            await field.press("Enter")
            gate.open = True
            gate.let(100)
            await expect(reply).to_have_text("Done: instruct")
            await expect(one.locator(".asked")).to_have_text("Tick B alone.")
            await one.get_by_role("button", name="Use the browser myself").click()
            await expect(reply).to_contain_text("Refused: nobody can see this browser: run with --watch")
            await one.get_by_role("button", name="Pause").click()
            await expect(reply).to_have_text("Done: pause")
            await expect(one.locator(".ending")).to_have_text("Paused")
            await one.get_by_role("button", name="Resume").click()
            await expect(reply).to_have_text("Done: resume")
            await one.get_by_role("button", name="Stop now").click()
            await running
            await expect(one.locator(".ending")).not_to_contain_text("Searching", timeout=15_000)
    said = [event for event in read_journal(journal_of(runner)) if isinstance(event, ev.Commanded)]
    assert [event.command for event in said] == ["instruct", "take", "pause", "resume", "stop"]


async def test_without_the_token_the_list_shows_and_commands_nothing(tmp_path: Path, chromium: Browser) -> None:
    runner = asking(tmp_path / "r", person_seconds=20)
    mixed_run(tmp_path / "tea")
    running = await begun(runner)
    with served(tmp_path, token="t" * 24, look_freely=True) as address:
        async with watching(chromium, f"{address}/") as page:
            await expect(page.locator("body")).to_contain_text("this view wants its token")
            await expect(page.locator('li[data-key="r/0"] .ending')).to_have_text("Asks a person")
            assert await page.locator(".steering, .question").count() == 0
            events = await asyncio.to_thread(first_event, address, "/events")
            assert '"steer": null' in events and "questions" not in events
        assert (await asyncio.to_thread(asked, address, "/r/0/command", "POST", b'{"name":"stop"}', **own(address)))[0] == 401
        assert not mailbox(journal_of(runner)).exists()
        async with watching(chromium, f"{address}/?token={'t' * 24}") as page:
            for _ in range(2):
                known = await asked_now(page)
                await page.get_by_role("button", name="Allow").click()
                await taken(page, known)
            await running
    assert [each.answer for each in answers(runner)] == ["yes", "yes"]


async def asked_now(page: Page) -> str:
    """Wait until the list shows a question, and return which one. Before that, what is known is of no question."""
    await expect(page.locator(".question")).to_have_count(1)
    return str(await page.locator("[data-part=questions]").get_attribute("data-known"))


async def taken(page: Page, known: str) -> None:
    """Wait until the question is no longer shown."""
    await until(page, f"document.querySelector('[data-part=questions]')?.dataset.known !== '{known}'")


def first_event(address: str, path: str) -> str:
    """Return the data of the first event of the list."""
    import urllib.request

    with urllib.request.urlopen(address + path) as answer:
        return next(line for line in iter(answer.readline, b"") if line.startswith(b"data:")).decode()


async def test_hostile_text_is_inert_in_the_list(tmp_path: Path, chromium: Browser) -> None:
    text = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
    run, settings = new_run(tmp_path / "odd", f"a {text}?seed=1", instruction=text)
    recorder = Recorder(run, run.manifest.tasks[0], settings, SHOP)
    recorder.begin()
    recorder.write(ev.PersonAsked(id="q", question=ev.PersonQuestion(kind="question", text=text)))
    mixed_run(tmp_path / "tea")
    dialogs: list[str] = []
    with served(tmp_path) as address:
        async with watching(chromium, f"{address}/") as page:
            page.on("dialog", lambda dialog: dialogs.append(dialog.message))
            await expect(page.locator('li[data-key="odd/0"] .asked')).to_have_text(text)
            await expect(page.locator(".question")).to_contain_text(text)
            assert await page.locator("img:not([src^='data:'])").count() == 0
    recorder.journal.close()
    assert not dialogs


async def test_a_run_that_does_not_read_is_named_with_the_reason_beside_the_others(tmp_path: Path) -> None:
    mixed_run(tmp_path / "good")
    mixed_run(tmp_path / "odd")
    (tmp_path / "odd" / "run.json").write_text("{")
    with served(tmp_path) as address:
        body = (await asyncio.to_thread(asked, address, "/"))[1]
    assert "run.json does not read" in body and 'data-key="good/0"' in body and 'data-key="odd/0"' not in body


async def test_the_list_of_one_run_has_its_attempts_alone(tea: str) -> None:
    body = (await asyncio.to_thread(asked, tea, "/ended/"))[1]
    assert 'data-key="ended/0"' in body and 'data-key="tea/0"' not in body and DOWN in body
    assert '"key": "tea/0"' not in await asyncio.to_thread(first_event, tea, "/ended/events")


async def test_the_list_of_a_benchmark_has_the_attempts_of_its_agents(tmp_path: Path) -> None:
    mixed_run(tmp_path / "agents" / "react")
    (tmp_path / "bench.json").write_text("{}")
    with served(tmp_path) as address:
        assert 'data-key="react/0"' in (await asyncio.to_thread(asked, address, "/react/"))[1]
