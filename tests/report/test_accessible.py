"""axe-core finds no serious fault in any page. `.ci/run` fetches it; the tests need no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from exact.cli.report import gains
from exact.environments.base import PersonQuestion
from exact.evaluation.folder import Result
from exact.evaluation.output import curves, render_page
from exact.evaluation.plan import Plan
from exact.report import build_index, build_suite
from exact.runs.journal import events as ev
from exact.runs.journal.store import RunFolder
from exact.task import Task
from tests.report.conftest import Show
from tests.report.journals import SHOP, Recorder, mixed_run, new_run
from tests.report.live.test_live import served
from tests.report.test_head import TELEPHONE, answered, unbegun

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = Path(__file__).parents[2] / ".bench" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not there: npm install --prefix .bench/npm axe-core@4.10.3")
    return AXE.read_text()


async def faults(page: Page, axe: str, *, every: bool = False) -> list[str]:
    """Return the serious findings of axe, or every finding: rule and element."""
    await page.evaluate(axe)
    found: dict[str, Any] = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["testEngine"]["name"] == "axe-core"
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"] if every or each["impact"] in SERIOUS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_report_has_no_serious_fault(show: Show, shop: RunFolder, axe: str, scheme: str) -> None:
    async with show(shop, "#node=1", color_scheme=scheme, reduced_motion="reduce") as page:
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert await faults(page, axe) == []


async def test_a_tree_on_a_canvas_has_no_serious_fault(show: Show, shop: RunFolder, axe: str) -> None:
    async with show(shop, reduced_motion="reduce") as page:
        await page.evaluate("TreeView.most = 2; view.draw()")
        assert await faults(page, axe) == []


async def test_the_page_of_an_attempt_that_never_began_has_no_serious_fault(show: Show, tmp_path: Path, axe: str) -> None:
    async with show(unbegun(tmp_path / "run", "the start page cannot be opened: is the site running?" * 9)) as page:
        assert await faults(page, axe) == []


async def test_the_top_of_a_report_with_long_texts_has_no_serious_fault(show: Show, tmp_path: Path, axe: str) -> None:
    async with show(answered(tmp_path / "run", "a long answer " * 90, reason="a long reason " * 90), reduced_motion="reduce") as page:
        assert await faults(page, axe) == []
        for summary in await page.locator("#head summary").all():
            await summary.click()
        assert await faults(page, axe) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_pages_of_suites_have_no_fault(chromium: Browser, tmp_path: Path, axe: str, scheme: str) -> None:
    one, other = (mixed_run(tmp_path / name) for name in ("one", "other"))
    pages = [build_index(one), build_suite([one, other], tmp_path / "compare.html", gains=gains([one, other])), bench_page(tmp_path)]
    for path in pages:
        page = await chromium.new_page(color_scheme=scheme)  # type: ignore[arg-type]
        await page.goto(path.as_uri())
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert await faults(page, axe, every=True) == [], path.name
        await page.set_viewport_size(TELEPHONE)  # type: ignore[arg-type]
        assert await faults(page, axe, every=True) == [], f"{path.name} on a telephone"
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path.name} fits a telephone"
        await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_live_list_and_the_live_view_have_no_fault(chromium: Browser, tmp_path: Path, axe: str, scheme: str) -> None:
    mixed_run(tmp_path / "tea")
    run, settings = new_run(tmp_path / "asks", "shop/tea?seed=7", iterations=12)
    recorder = Recorder(run, run.manifest.tasks[0], settings, SHOP)
    recorder.begin()
    recorder.commit()
    recorder.write(ev.PersonAsked(id="q", question=PersonQuestion(kind="question", text="For whom?")))
    with served(tmp_path) as address:
        for path in ("/", "/asks/0/"):
            page = await chromium.new_page(color_scheme=scheme, reduced_motion="reduce", bypass_csp=True)  # type: ignore[arg-type]
            await page.goto(address + path)
            await expect(page.locator(".question")).to_contain_text("For whom?")
            await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
            assert await faults(page, axe, every=True) == [], path
            await page.set_viewport_size(TELEPHONE)  # type: ignore[arg-type]
            assert await faults(page, axe, every=True) == [], f"{path} on a telephone"
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"{path} fits a telephone"
            await page.close()
    recorder.journal.close()


def bench_page(folder: Path) -> Path:
    """Write the page of a benchmark with two agents."""
    tasks = tuple(Task(id=f"shop/{n}", instruction="Buy tea.") for n in range(3))
    plan = Plan(suite="shop", agents=("a", "b"), tasks=tasks, budget={})
    lines = [
        Result(task="shop/0", seed=0, agent="a", status="scored", score=1.0, answer="done", cost=0.02, calls=3),
        Result(task="shop/1", seed=0, agent="a", status="failed", reason="the site is down", began=False),
        Result(task="shop/2", seed=0, agent="a", status="scored", score=0.0),
        Result(task="shop/0", seed=0, agent="b", status="scored", score=0.0, oracle=True, informed=1),
    ]
    links, curve = {("a", f"shop/{n}"): "report.html" for n in range(3)}, curves({"a": [(1.0, 0.5)]}, x="calls", title="shop")
    path = folder / "bench.html"
    path.write_text(render_page(plan, lines, curve, reports=links, instructions={t.id: t.instruction for t in tasks}))
    return path


async def test_axe_would_find_one(show: Show, shop: RunFolder, axe: str) -> None:
    async with show(shop) as page:
        await page.evaluate(
            "document.getElementById('find').removeAttribute('aria-label'); document.getElementById('find').removeAttribute('placeholder')"
        )
        assert any(fault.startswith("label") for fault in await faults(page, axe))
