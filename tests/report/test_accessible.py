"""axe-core finds no serious fault in any page. `.ci/run` fetches it; the tests need no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from exact.evaluation.folder import Result
from exact.evaluation.output import render_page
from exact.evaluation.plan import Plan
from exact.report import build_index, build_report
from exact.runs.journal.store import RunFolder
from exact.task import Task
from tests.report.conftest import Show
from tests.report.test_head import answered, unbegun

pytestmark = pytest.mark.asyncio(loop_scope="session")

AXE = Path(__file__).parents[2] / ".bench" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not there: npm install --prefix .bench/npm axe-core@4.10.3")
    return AXE.read_text()


async def faults(page: Page, axe: str) -> list[str]:
    """Return the serious findings of axe: rule and element."""
    await page.evaluate(axe)
    found: dict[str, Any] = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert found["testEngine"]["name"] == "axe-core"
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"] if each["impact"] in SERIOUS]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_a_report_has_no_serious_fault(show: Show, shop: RunFolder, axe: str, scheme: str) -> None:
    async with show(shop, "#node=1", color_scheme=scheme, reduced_motion="reduce") as page:
        await page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        assert await faults(page, axe) == []


async def test_a_tree_on_a_canvas_has_no_serious_fault(show: Show, shop: RunFolder, axe: str) -> None:
    async with show(shop, reduced_motion="reduce") as page:
        await page.evaluate("TreeView.most = 2; view.draw()")
        assert await faults(page, axe) == []


async def test_the_page_of_a_run_has_no_serious_fault(chromium: Browser, shop: RunFolder, axe: str) -> None:
    page = await chromium.new_page()
    build_report(shop, shop.manifest.tasks[0])
    await page.goto(build_index(shop).as_uri())
    assert await faults(page, axe) == []
    await page.close()


async def test_the_page_of_an_attempt_that_never_began_has_no_serious_fault(show: Show, tmp_path: Path, axe: str) -> None:
    async with show(unbegun(tmp_path / "run", "the start page cannot be opened: is the site running?" * 9)) as page:
        assert await faults(page, axe) == []


async def test_the_top_of_a_report_with_long_texts_has_no_serious_fault(show: Show, tmp_path: Path, axe: str) -> None:
    async with show(answered(tmp_path / "run", "a long answer " * 90, reason="a long reason " * 90), reduced_motion="reduce") as page:
        assert await faults(page, axe) == []
        for summary in await page.locator("#head summary").all():
            await summary.click()
        assert await faults(page, axe) == []


async def test_the_page_of_a_benchmark_has_no_serious_fault(chromium: Browser, tmp_path: Path, axe: str) -> None:
    plan = Plan(suite="shop", agents=("a",), tasks=tuple(Task(id=f"shop/{n}", instruction="Buy tea.") for n in range(3)), budget={})
    lines = [
        Result(task="shop/0", seed=0, agent="a", status="scored", score=1.0, answer="done"),
        Result(task="shop/1", seed=0, agent="a", status="failed", reason="the site is down", began=False),
        Result(task="shop/2", seed=0, agent="a", status="scored", score=0.0),
    ]
    links = {("a", f"shop/{n}"): "report.html" for n in range(3)}
    (tmp_path / "index.html").write_text(
        render_page(plan, lines, "", reports=links, instructions={t.id: t.instruction for t in plan.tasks})
    )
    page = await chromium.new_page()
    await page.goto((tmp_path / "index.html").as_uri())
    assert await faults(page, axe) == []
    await page.close()


async def test_axe_would_find_one(show: Show, shop: RunFolder, axe: str) -> None:
    async with show(shop) as page:
        await page.evaluate(
            "document.getElementById('find').removeAttribute('aria-label'); document.getElementById('find').removeAttribute('placeholder')"
        )
        assert any(fault.startswith("label") for fault in await faults(page, axe))
