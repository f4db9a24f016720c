"""What stands at the top of a report: the outcome, the answer, the reasons, and then the tree."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import FloatRect, Page, expect

from exact.report import build_report
from exact.report.model.model import report
from exact.runs.journal import events as ev
from exact.runs.journal.file import Journal
from exact.runs.journal.store import RunFolder
from exact.task import Score
from tests.report.conftest import Show
from tests.report.journals import SHOP, Recorder, ended_run, failed_run, long_run, new_run, refused_run, shop_run, solved_run

pytestmark = pytest.mark.asyncio(loop_scope="session")
DESKTOP = {"width": 1440, "height": 900}
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


async def test_an_empty_answer_is_said_to_be_empty_and_no_answer_is_said_to_be_none(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "empty", "")) as page:
        await expect(page.locator("#head .answer")).to_have_text("Answer (empty)")
    async with show(answered(tmp_path / "none", None)) as page:
        await expect(page.locator("#head .answer")).to_have_text("No answer")


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


async def test_the_whole_tree_is_in_its_frame_at_a_readable_size(show: Show, tmp_path: Path) -> None:
    async with show(answered(tmp_path / "run", LONG, reason=LONG), viewport=LAPTOP) as page:
        sizes = await page.eval_on_selector_all(".card .action.whole", "all => all.map(each => each.getBoundingClientRect().height)")
        assert sizes and min(sizes) >= 11
        frame = await page.locator("#tree").bounding_box()
        for card in await page.locator(".card .face").all():
            assert frame and within(await card.bounding_box(), frame)


def within(box: FloatRect | None, frame: FloatRect) -> bool:
    """Return whether a box lies inside a frame, but for the thickness of a line."""
    return box is not None and all(
        frame[start] - 1 <= box[start] and box[start] + box[size] <= frame[start] + frame[size] + 1
        for start, size in (("x", "width"), ("y", "height"))
    )


FIRST = {"outcome": ".ending", "answer": ".outcome .answer", "reason": ".sentence"}
THEN = {"last step": "ol.steps > li:last-child", "cost": ".spent"}
UNCHECKED = "No evaluator has checked the result."
ADVICE = {"advice": ".way"}
KINDS = {"solved": (solved_run, {}), "failed": (failed_run, ADVICE), "refused": (refused_run, ADVICE), "long": (long_run, {})}


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_person_looks_for_first_is_in_the_first_view(show: Show, tmp_path: Path, kind: str) -> None:
    written, advice = KINDS[kind]
    async with show(written(tmp_path / "run"), viewport=DESKTOP, reduced_motion="reduce") as page:
        for selector in (FIRST | THEN | advice).values():
            assert within(await page.locator(selector).bounding_box(), screen(DESKTOP)), selector
        column, last = await page.locator("#steps").bounding_box(), await page.locator(THEN["last step"]).bounding_box()
        assert column and within(last, column)
        await page.set_viewport_size(TELEPHONE)  # type: ignore[arg-type]
        for selector in FIRST.values():
            assert within(await page.locator(selector).bounding_box(), screen(TELEPHONE)), selector


def screen(viewport: dict[str, int]) -> FloatRect:
    return {"x": 0, "y": 0, "width": viewport["width"], "height": viewport["height"]}


@pytest.mark.parametrize(
    ("kind", "headline", "sentence"),
    [
        ("solved", "Solved", "The evaluator found what the goal asks for: score 1.00."),
        ("failed", "Failed", "The model did not answer, so there is no score."),
        ("refused", "Blocked by safety", f"Safety did not let POST http://shop.test/pay out: a person refused it. {UNCHECKED}"),
        ("long", "Not finished", f"No actions left: the limit is 14. {UNCHECKED}"),
    ],
)  # fmt: skip
async def test_the_end_is_told_in_the_words_of_a_manager(tmp_path: Path, kind: str, headline: str, sentence: str) -> None:
    run = KINDS[kind][0](tmp_path / "run")
    head = report(run, run.manifest.tasks[0], screenshots=False).head
    assert (head.headline, head.sentence) == (headline, sentence)


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [
        ("no action is left: the task's budget of 480 seconds is used up", "No time left: the limit is 480 s."),
        ("the attempt's budget of 0.5 money is used up", "No money left: the limit is $0.5."),
        ("no action is left: every action was tried", "No action was left to try."),
    ],
)
async def test_a_limit_that_left_no_action_is_named(tmp_path: Path, reason: str, sentence: str) -> None:
    run = ended_run(tmp_path / "run", reason, steps=1)
    assert report(run, run.manifest.tasks[0], screenshots=False).head.sentence == f"{sentence} {UNCHECKED}"


async def test_arrow_keys_walk_the_steps_and_a_step_selects_its_state(show: Show, tmp_path: Path) -> None:
    async with show(solved_run(tmp_path / "run"), viewport=DESKTOP, reduced_motion="reduce") as page:
        await expect(page.locator("[aria-current=step] code")).to_have_text('click button "Pay"')
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("ArrowUp")
        await expect(page.locator("[aria-current=step] code")).to_have_text('fill spinbutton "Quantity" "2"')
        await expect(page.locator("#panel h2")).to_have_text('fill [8] spinbutton "Quantity" "2"')
        assert page.url.endswith("#step=2") and await page.evaluate("view.selected.node.committed")
        await page.keyboard.press("ArrowDown")
        assert page.url.endswith("#step=3")


async def test_a_link_to_a_step_opens_it(show: Show, tmp_path: Path) -> None:
    async with show(solved_run(tmp_path / "run"), "#step=1", viewport=DESKTOP) as page:
        await expect(page.locator("#panel h2")).to_have_text('click [4] link "Green tea"')


async def test_an_alternative_says_why_it_lost(show: Show, tmp_path: Path) -> None:
    async with show(solved_run(tmp_path / "run"), "#step=1", viewport=DESKTOP) as page:
        lost = page.locator("#panel details", has_text="Alternatives").locator("tr", has_text="Black tea").locator(".lost")
        await expect(lost).to_have_text("Rated 0.55 against 0.67.")
        await expect(page.locator("#step-1 .rated")).to_have_text('Rated 0.67 against 0.55 for click link "Black tea" (most visits).')
        await page.locator("#step-1 summary").click()
        await page.locator("#step-1 li a", has_text="Black tea").click()
        await expect(page.locator("#panel h2")).to_have_text('click [5] link "Black tea"')


async def test_the_last_state_is_called_neither_committed_nor_failed_beside_it(show: Show, tmp_path: Path) -> None:
    async with show(failed_run(tmp_path / "run"), "#node=2", viewport=DESKTOP) as page:
        await page.evaluate("NODES.get(2).status = 'failed'; panelOf(NODES.get(2)); view.draw()")
        await expect(page.locator("#panel header .tag")).to_have_text(["last state"])
        assert "failed" not in str(await page.locator("#item-2").get_attribute("class"))


async def test_a_telephone_shows_the_steps_and_the_tree_on_request(show: Show, tmp_path: Path) -> None:
    async with show(solved_run(tmp_path / "run"), viewport=TELEPHONE, reduced_motion="reduce") as page:
        await expect(page.locator("ol.steps > li")).to_have_count(4)
        for later in ("#branches", "#panel"):
            await expect(page.locator(later)).to_be_hidden()
        await page.get_by_role("button", name="Show the search tree").click()
        frame = await page.locator("#tree").bounding_box()
        assert frame and within(await page.locator("#item-0 .face").bounding_box(), frame)
        await page.locator("#step-2 a").first.click()
        await expect(page.locator("#panel h2")).to_have_text('fill [8] spinbutton "Quantity" "2"')


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
