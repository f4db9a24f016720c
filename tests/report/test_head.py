"""What stands at the top of a report: the outcome, the answer, the reasons, and then the tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from exact.report import build_report
from exact.report.model.model import report
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal
from exact.runs.journal.store import RunFolder
from exact.task import Score
from tests.report.conftest import Show
from tests.report.journals import SHOP, Recorder, new_run, shop_run

pytestmark = pytest.mark.asyncio(loop_scope="session")
LAPTOP, TELEPHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
LONG = "the basket holds one pack of green tea, and the task asks for two of them. " * 12


def answered(folder: Path, answer: str | None, *, reason: str = "", failed: str = "", resumable: bool = True) -> RunFolder:
    """A run that ends with an answer and a score of 0, or fails after the answer."""
    run, config = new_run(folder, "shop/<i>tea?seed=1")
    recorder = Recorder(run, run.manifest.tasks[0], config, SHOP)
    recorder.begin()
    recorder.commit()
    recorder.write(ev.Ended(reason="the agent stopped", answer=answer))
    if not failed:
        recorder.write(ev.Scored(score=Score(value=0.0, success=False, reason=reason)))
    recorder.write(ev.Finished(status="failed" if failed else "scored", reason=failed, resumable=resumable))
    recorder.journal.close()
    return run


def unbegun(folder: Path, reason: str) -> RunFolder:
    run, _ = new_run(folder, "shop/tea?seed=1")
    task = run.manifest.tasks[0]
    journal = Journal(run.task_folder(task) / "journal.jsonl")
    journal.write(ev.Opened(schema=ev.SCHEMA, task=task, seed=0, config="c0ffee"))
    journal.write(ev.Finished(status="failed", reason=reason))
    journal.close()
    return run


@pytest.mark.parametrize(
    "answer", ["42", "first line\nsecond line", '<img src=x onerror="alert(1)"><b>42</b>', "日本 🍵 naïve", "\u202eevil", "x" * 3_000, LONG]
)
async def test_the_answer_is_at_the_top_as_text(show: Show, tmp_path: Path, answer: str) -> None:
    async with show(answered(tmp_path / "run", answer), viewport=LAPTOP) as page:
        shown = await page.locator(".folded.answer .text").inner_text()
        assert shown.startswith("Answer") and await page.locator("#head img").count() == 0
        assert answer.replace("\u202e", "\\u202e").split()[-1] in shown
        assert await top_of_tree(page) < 300


async def top_of_tree(page: Page) -> float:
    box = await page.locator("#explorer").bounding_box()
    assert box
    return box["y"]


async def test_an_empty_answer_is_said_to_be_empty_and_no_answer_is_not_mentioned(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "empty", "")) as page:
        await expect(page.locator("#head .answer")).to_have_text("Answer (empty)")
    async with show(answered(tmp_path / "none", None)) as page:
        await expect(page.locator("#head .answer")).to_have_count(0)


async def test_an_evaluators_reason_takes_two_lines_and_unfolds_by_keyboard(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "run", "1", reason=LONG), viewport=LAPTOP) as page:
        text = page.locator(".folded.reason .text")
        line = float(await text.evaluate("each => parseFloat(getComputedStyle(each).lineHeight)"))
        folded = await text.evaluate("each => each.clientHeight")
        assert folded <= 2 * line + 1
        await page.locator(".folded.reason summary").focus()
        await page.keyboard.press("Enter")
        assert await text.evaluate("each => each.clientHeight") > folded


async def test_a_short_reason_has_nothing_to_unfold(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "run", "1", reason="one pack"), viewport=LAPTOP) as page:
        await expect(page.locator(".folded.reason.whole")).to_contain_text("one pack")


@pytest.mark.parametrize(("viewport", "share"), [(LAPTOP, 0.33), (TELEPHONE, 0.45)])
async def test_the_tree_is_on_the_first_screen_at_a_readable_size(
    show: Show, tmp_path: Path, viewport: dict[str, int], share: float
) -> None:
    run = answered(tmp_path / "run", LONG, reason=LONG)
    async with show(run, viewport=viewport) as page:
        assert await top_of_tree(page) < share * viewport["height"]
        sizes = await page.eval_on_selector_all(".card .action.whole", "all => all.map(each => each.getBoundingClientRect().height)")
        assert sizes and min(sizes) >= 11
        first = await page.locator("#item-0").bounding_box()
        assert first and first["y"] + first["height"] < viewport["height"] and first["x"] >= 0


async def test_a_failure_after_the_answer_shows_both_and_one_way_on(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "a", "42", failed="the judge did not answer: is its server running?")) as page:
        await expect(page.locator("#head")).to_contain_text("Answer 42")
        await expect(page.locator("#head")).to_contain_text("Why it failed the judge did not answer")
        await expect(page.locator("#head .way")).to_have_text(
            "When the cause is fixed, exact resume with the folder of this run tries again."
        )
    async with show(answered(tmp_path / "b", "42", failed="it wrote outside: start a new run", resumable=False)) as page:
        await expect(page.locator("#head .way")).to_have_text("Resuming cannot help: when the cause is fixed, start a new run.")


@pytest.mark.parametrize(
    "reason", ["the start page cannot be opened", "the service `python app.py` ended with status 1 <script>alert(1)</script>"]
)
async def test_an_attempt_that_never_began_says_only_that(show: Show, tmp_path: Path, reason: str) -> None:
    async with show(unbegun(tmp_path / "run", reason), viewport=LAPTOP) as page:
        await expect(page.locator(".ending")).to_have_text("Did not begin")
        await expect(page.locator("body")).to_contain_text(reason)
        for left_out in ("#explorer", "#below", ".facts", "#plots"):
            await expect(page.locator(left_out)).to_have_count(0)
        text = await page.locator("body").inner_text()
        assert "No write" not in text and "Search health" not in text and "$" not in text


async def test_a_shared_copy_redacts_the_answer_and_the_reasons(tmp_path: Path) -> None:
    run = answered(tmp_path / "run", "write to ann@example.org", reason="the answer names ann@example.org")
    text = build_report(run, run.manifest.tasks[0], share=True).read_text()
    assert "ann@example.org" not in text and "e-mail address removed" in text


async def test_a_journal_without_an_end_has_no_answer_and_no_way_on(tmp_path: Path) -> None:
    run = shop_run(tmp_path / "run")
    path = run.task_folder(run.manifest.tasks[0]) / "journal.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-5]))
    head = report(run, run.manifest.tasks[0], screenshots=False).head
    assert (head.answer, head.way_on, head.began) == (None, "", True)
