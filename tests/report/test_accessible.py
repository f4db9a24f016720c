"""axe-core finds no serious fault in any page. `.ci/run` fetches it; the tests need no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page

from exact.report import build_index, build_report
from exact.runs.journal.store import RunFolder
from tests.report.conftest import Show

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


async def test_axe_would_find_one(show: Show, shop: RunFolder, axe: str) -> None:
    async with show(shop) as page:
        await page.evaluate(
            "document.getElementById('find').removeAttribute('aria-label'); document.getElementById('find').removeAttribute('placeholder')"
        )
        assert any(fault.startswith("label") for fault in await faults(page, axe))
