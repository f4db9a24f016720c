"""Runs in one table, and two of them side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from exact.cli.main import main
from exact.cli.report import gains
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.errors import UsageError
from exact.report import build_index, build_suite
from exact.report.suite import difference, suite
from exact.runs.journal.store import ResultLine, RunFolder
from tests.report.journals import ANSWER, DOWN, mixed_run, new_run
from tests.report.test_head import DESKTOP, screen, within
from tests.runs.toys import config, toy_runner

pytestmark = pytest.mark.asyncio(loop_scope="session")


def line(task: str, **fields: object) -> ResultLine:
    return ResultLine(**({"task": task, "seed": 1, "agent": "a", "status": "scored", "actions": 3, "calls": 2, "tokens": 900} | fields))  # type: ignore[arg-type]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, RunFolder, RunFolder]:
    """Three runs at one task: two alike, and one with another exploration constant."""
    folder, runs = tmp_path_factory.mktemp("pair"), list[RunFolder]()
    for name, c in (("one", 0.5), ("same", 0.5), ("other", 4.0)):
        runner = toy_runner(folder / name, ToyFactory(form(3)), config(search={"algorithm": "mcts", "iterations": 20, "k": 4, "c": c}))
        await runner.run()
        runs.append(runner.folder)
    return runs[0], runs[1], runs[2]


async def test_equal_searches_differ_nowhere(pair: tuple[RunFolder, ...]) -> None:
    (found,) = suite(pair[:2]).differences
    assert found.words == ("", "") and found.step is None and found.alike > 40


async def test_the_first_point_at_which_two_searches_part_is_found(pair: tuple[RunFolder, ...]) -> None:
    (found,) = suite([pair[0], pair[2]]).differences
    assert found.alike > 0 and found.words[0] != found.words[1] and all(found.words)


async def test_a_difference_is_the_first_one_and_counts_what_is_alike() -> None:
    left = [("a", 0, 0), ("b", 1, 1), ("c", 2, 2)]
    right = [("a", 0, 0), ("x", 5, 1), ("c", 2, 2)]
    found = difference(0, 1, left, right, ("go", "on"), ("go", "off"))
    assert (found.alike, found.words, found.nodes, found.step) == (1, ("b", "x"), (1, 5), 1)


async def test_a_search_that_went_on_differs_where_the_other_ended() -> None:
    found = difference(0, 1, [("a", 0, 0)], [("a", 0, 0), ("b", 1, 1)], (), ())
    assert (found.alike, found.words, found.step) == (1, ("nothing more", "b"), None)


async def test_one_run_alone_is_no_comparison(pair: tuple[RunFolder, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs two runs"):
        build_suite(pair[:1], tmp_path / "x.html")


async def test_own_views_are_set_against_scores(tmp_path: Path) -> None:
    run, _ = new_run(tmp_path / "run", *(f"t/{i}" for i in range(4)))
    for i, (value, score) in enumerate([(0.9, 1.0), (0.95, 0.0), (0.1, 0.0)]):
        run.add_result(line(f"t/{i}", value=value, score=score))
    low, high = suite([run]).reliability["run"]
    assert (low.count, low.came) == (1, 0.0)
    assert (high.count, high.said, high.came) == (2, pytest.approx(0.925), 0.5)


Opened = Callable[..., AbstractAsyncContextManager[Page]]


@pytest.fixture
def opened(chromium: Browser) -> Opened:
    """`async with opened(path) as page`: a page of a file. Fails on an error or a request."""

    @asynccontextmanager
    async def shown(path: Path, **context: Any) -> AsyncIterator[Page]:
        wrong: list[str] = []
        page = await chromium.new_page(**context)
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else wrong.append(request.url))
        await page.goto(path.as_uri())
        yield page
        assert not wrong
        await page.close()

    return shown


@pytest_asyncio.fixture(loop_scope="session")
async def page(pair: tuple[RunFolder, ...], opened: Opened) -> AsyncIterator[Page]:
    """Open the comparison."""
    paths = [str(run.path) for run in pair]
    assert await asyncio.to_thread(main, ["report", *paths]) == 0
    async with opened(pair[0].path.parent / "compare.html") as found:
        yield found


async def test_a_column_sorts_the_table_and_once_more_turns_it(page: Page) -> None:
    first = page.locator("#attempts tbody tr").first.locator("td").nth(1)
    await page.get_by_role("button", name="Run", exact=True).click()
    assert await first.text_content() == "one"
    await page.get_by_role("button", name="Run", exact=True).click()
    assert await first.text_content() == "same"
    await expect(page.locator("th[aria-sort=descending]")).to_have_count(1)


async def test_words_and_endings_filter_the_table(page: Page) -> None:
    await page.get_by_label("Filter the table").fill("other")
    await expect(page.locator("#attempts tbody tr:visible")).to_have_count(1)
    await expect(page.locator("#counted")).to_have_text("1 of 3")
    await page.get_by_label("Filter the table").fill("")
    await expect(page.locator("#attempts tbody tr:visible")).to_have_count(3)


async def test_two_chosen_rows_are_shown_side_by_side_with_where_they_part(page: Page) -> None:
    await page.locator(".pick").nth(0).check()
    await page.locator(".pick").nth(2).check()
    await expect(page.locator("#compared")).to_contain_text("they differ")
    assert await page.locator("#compared .sides tbody tr").count() >= 1
    await page.locator(".pick").nth(1).check()
    await expect(page.locator(".pick:checked")).to_have_count(2)


async def test_equal_runs_are_said_to_be_equal(page: Page) -> None:
    await page.locator(".pick").nth(0).check()
    await page.locator(".pick").nth(1).check()
    await expect(page.locator("#compared")).to_contain_text("are the same in all")


async def test_one_task_has_no_plot(page: Page) -> None:
    await expect(page.locator("figure, .plots")).to_have_count(0)


async def test_the_plots_are_drawn_for_every_run(tmp_path: Path, opened: Opened) -> None:
    async with opened(build_suite([scored(tmp_path / name, 1.0, 0.0) for name in "abc"], tmp_path / "compare.html")) as page:
        await expect(page.locator("#costs .line")).to_have_count(3)
        await expect(page.locator("#costs .key li")).to_have_count(3)
        await expect(page.locator("#trust figcaption")).to_contain_text("Own evaluation against score")


def scored(folder: Path, *scores: float) -> RunFolder:
    """Write a run with these scores, and no journals."""
    run, _ = new_run(folder, *(f"shop/{name}?seed=1" for name in "abcdefgh"[: len(scores)]))
    for task, score in zip(run.manifest.tasks, scores, strict=True):
        run.add_result(line(task.id, score=score, value=0.5, transitions=3))
    return run


FOUND = {
    "outcome": ".came .ending", "answer": ".came .answer", "reason": ".came .reason", "cause": ".came .cause", "advice": ".came .way",
    "last action": "td.last", "cost": "td.money", "last state": ".pictured img",
}  # fmt: skip


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_what_a_person_looks_for_first_is_in_the_first_view_of_a_suite(tmp_path: Path, opened: Opened, scheme: str) -> None:
    async with opened(build_index(mixed_run(tmp_path / "run")), viewport=DESKTOP, color_scheme=scheme) as page:
        for name, selector in {"solved": ".outcome .ending", "spent": ".spent"}.items():
            assert within(await page.locator(selector).bounding_box(), screen(DESKTOP)), name
        counts = {"outcome": 5, "answer": 1, "reason": 3, "cause": 1, "advice": 2, "last action": 5, "cost": 4, "last state": 4}
        for name, selector in FOUND.items():
            found = await page.locator(selector).all()
            assert len(found) == counts[name], name
            for each in found:
                assert within(await each.bounding_box(), screen(DESKTOP)), name


@pytest.mark.parametrize("runs", [1, 3])
async def test_on_a_phone_a_last_state_stands_beside_its_task(tmp_path: Path, opened: Opened, runs: int) -> None:
    made = [mixed_run(tmp_path / f"run{number}") for number in range(runs)]
    file = build_index(made[0]) if runs == 1 else build_suite(made, tmp_path / "c.html")
    async with opened(file, viewport={"width": 390, "height": 844}) as page:
        row = page.locator(".run tbody tr").first
        shown, named, score = [await row.locator(part).bounding_box() for part in (".pictured", ".named", "[data-unit=Score]")]
        assert shown and named and score
        assert shown["x"] < 40 and named["x"] >= shown["x"] + shown["width"]
        assert abs(shown["y"] - named["y"]) < 30 and score["y"] >= shown["y"] + 60


async def test_a_suite_says_why_each_attempt_ended_and_what_to_do_as_its_report_does(tmp_path: Path, opened: Opened) -> None:
    async with opened(build_index(mixed_run(tmp_path / "run"))) as page:
        solved, failed, refused, unsolved, unbegun = (page.locator("#attempts tbody tr").nth(n) for n in range(5))
        await expect(page.locator(".sentence")).to_have_text("1 failed, 1 blocked by safety, 1 not solved, 1 not started.")
        await expect(solved.locator(".came")).to_contain_text(f"Answer {ANSWER}")
        await expect(solved.locator(".last")).to_have_text('click button "Pay"')
        await expect(failed.locator(".cause")).to_have_text(DOWN)
        await expect(failed.locator(".way")).to_contain_text("exact resume with the folder of this run tries again")
        await expect(refused.locator(".came")).to_contain_text("Blocked by safety")
        await expect(refused.locator(".reason")).to_contain_text("Safety did not let POST http://shop.test/pay out: a person refused it.")
        await expect(unsolved.locator(".reason")).to_have_text("No actions left: the limit is 3. Nothing was paid.")
        await expect(unbegun).to_contain_text("Not started")


async def test_a_long_cause_of_a_failure_is_whole(tmp_path: Path, opened: Opened) -> None:
    run, reason = scored(tmp_path / "run", 1.0, 1.0), "the server answered with an error of its own. " * 40
    run.add_result(line("shop/a?seed=1", status="failed", reason=reason, missing="model"))
    async with opened(build_index(run), viewport=DESKTOP) as page:
        cause = page.locator(".cause")
        await expect(cause).to_have_text(reason.strip())
        assert await cause.evaluate("each => each.scrollHeight <= each.clientHeight + 1")


async def test_columns_that_few_people_know_are_folded_and_explained(tmp_path: Path, opened: Opened) -> None:
    async with opened(build_index(mixed_run(tmp_path / "run"))) as page:
        drift = page.get_by_role("columnheader", name="Drift")
        await expect(drift).to_be_hidden()
        await page.locator("#more summary").press("Enter")
        await expect(drift).to_be_visible()
        await expect(page.locator("#more")).to_contain_text("Times that a return to a state of the search led to another state.")


async def test_two_runs_stand_side_by_side_with_their_paired_gain(tmp_path: Path, opened: Opened) -> None:
    one, other = scored(tmp_path / "one", 1.0, 0.0, 0.0, 0.0), scored(tmp_path / "other", 1.0, 1.0, 1.0, 0.0)
    async with opened(build_suite([one, other], tmp_path / "c.html", gains=gains([one, other])), viewport=DESKTOP) as page:
        await expect(page.locator(".versus")).to_contain_text("Gain +0.500")
        await expect(page.locator(".versus")).to_contain_text("2 wins, 0 losses, 2 ties.")
        await expect(page.locator(".beside tbody tr")).to_have_count(4)
        await expect(page.locator(".beside tbody tr").nth(1).locator(".ending")).to_have_text(["Not solved", "Solved"])
        assert within(await page.locator(".beside").bounding_box(), screen(DESKTOP))
        await page.get_by_role("button", name="Compare the searches of shop/b, seed 1").click()
        await expect(page.locator("#compared h2")).to_have_text("one and other")


async def test_names_of_tasks_are_text(tmp_path: Path, chromium: Browser) -> None:
    run, _ = new_run(tmp_path / "run", "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>")
    opened, dialogs = await chromium.new_page(), list[str]()
    opened.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await opened.goto(build_index(run).as_uri())
    await expect(opened.locator("#attempts")).to_contain_text("<img src=x onerror=alert(1)>")
    assert not dialogs
    await opened.close()
