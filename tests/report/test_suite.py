"""Runs in one table, and two of them side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from exact.cli.main import main
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import form
from exact.errors import UsageError
from exact.report import build_suite
from exact.report.suite import difference, suite
from exact.runs.journal.store import ResultLine, RunFolder
from tests.report.journals import new_run
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


@pytest_asyncio.fixture(loop_scope="session")
async def page(pair: tuple[RunFolder, ...], chromium: Browser) -> AsyncIterator[Page]:
    """Open the comparison. Fails on a console message, an error or a request."""
    paths = [str(run.path) for run in pair]
    out = pair[0].path.parent / "compare.html"
    assert await asyncio.to_thread(main, ["report", *paths]) == 0
    wrong: list[str] = []
    opened = await chromium.new_page()
    opened.on("console", lambda message: wrong.append(message.text))
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else wrong.append(request.url))
    await opened.goto(out.as_uri())
    yield opened
    assert not wrong
    await opened.close()


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


async def test_the_plots_are_drawn_for_every_run(page: Page) -> None:
    await expect(page.locator("#costs .line")).to_have_count(3)
    await expect(page.locator("#costs .key li")).to_have_count(3)
    await expect(page.locator("#trust figcaption")).to_contain_text("Own evaluation against score")


async def test_names_of_tasks_are_text(tmp_path: Path, chromium: Browser) -> None:
    run, _ = new_run(tmp_path / "run", "<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>")
    from exact.report import build_index

    opened, dialogs = await chromium.new_page(), list[str]()
    opened.on("dialog", lambda dialog: dialogs.append(dialog.message))
    await opened.goto(build_index(run).as_uri())
    await expect(opened.locator("#attempts")).to_contain_text("<img src=x onerror=alert(1)>")
    assert not dialogs
    await opened.close()
