"""Pages of the built documentation site in a browser: axe finds nothing, and nothing is cut off or loaded from elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from tests.docs.test_site import module

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROOT = Path(__file__).parents[2]
MKDOCS = ROOT / ".bench" / "venvs" / "docs" / "bin" / "python"
AXE = ROOT / ".bench" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
PAGES = ("index", "tutorial/index", "tutorial/first_search", "configuration/search", "results/index")
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the site, built strictly."""
    if not MKDOCS.exists():
        pytest.skip("mkdocs is not there: shells/setup.sh --docs")
    folder = tmp_path_factory.mktemp("site")
    command = [str(MKDOCS), "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environ = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def chromium(executable: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable)
        yield browser
        await browser.close()


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.skip("axe-core is not there: npm install --prefix .bench/npm axe-core@4.10.3")
    return AXE.read_text()


@asynccontextmanager
async def shown(chromium: Browser, site: Path, name: str, *, size: str, scheme: str = "light") -> AsyncIterator[tuple[Page, list[str]]]:
    """Open a page, and collect what it asks other hosts for."""
    width, height = SIZES[size]
    page = await chromium.new_page(
        viewport={"width": width, "height": height}, color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce"
    )
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.goto((site / f"{name}.html").as_uri())
    await page.evaluate("document.fonts.ready")
    yield page, [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    await page.close()


async def test_no_link_of_the_site_leads_nowhere(site: Path) -> None:
    assert module("links").dead(site) == []


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
async def test_axe_finds_nothing(chromium: Browser, site: Path, axe: str, name: str, scheme: str, size: str) -> None:
    async with shown(chromium, site, name, size=size, scheme=scheme) as (page, _):
        assert await page.evaluate("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[scheme]
        await page.evaluate(axe)
        found: dict[str, Any] = await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [f"{each['id']}: {each['nodes'][0]['html'][:160]}" for each in found["violations"]] == []


CUT = """() => [...document.querySelectorAll('article *')].filter(each => {
  const box = each.getBoundingClientRect(), style = getComputedStyle(each);
  if (!box.width || each.closest('.headerlink, svg') || style.position === 'absolute') return false;
  if (each.closest('pre, .table:not(.keys)') && !each.matches('pre, .table')) return false;  // these scroll in their own frame
  return box.left < -1 || box.right > innerWidth + 1;
}).map(each => each.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("name", [*PAGES, "models", "reference/api", "reference/cli", "search_options"])
async def test_on_a_telephone_nothing_is_cut_off_and_the_page_does_not_scroll_sideways(chromium: Browser, site: Path, name: str) -> None:
    async with shown(chromium, site, name, size="narrow") as (page, asked):
        assert await page.evaluate("document.documentElement.scrollWidth") <= SIZES["narrow"][0]
        assert await page.evaluate(CUT) == []
        assert asked == []


async def test_code_that_is_too_wide_for_a_telephone_scrolls_in_its_frame(chromium: Browser, site: Path) -> None:
    async with shown(chromium, site, "tutorial/first_search", size="narrow") as (page, _):
        wide = await page.evaluate("[...document.querySelectorAll('pre > code')].filter(e => e.scrollWidth > e.clientWidth).length")
        assert wide > 0
        kept = "e => ['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || e.scrollWidth <= e.clientWidth"
        assert await page.evaluate(f"[...document.querySelectorAll('pre > code')].every({kept})")


WORDS = """() => [...document.querySelectorAll('article td, article th')].filter(cell => {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode());) {
    for (const word of text.data.matchAll(/[A-Za-z]{2,}/g)) {
      const range = document.createRange();
      range.setStart(text, word.index);
      range.setEnd(text, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) return true;
    }
  }
  return false;
}).map(cell => cell.textContent.slice(0, 80))"""


@pytest.mark.parametrize("name", ["results/index", "configuration/search", "models", "reference/cli", "concepts/rmcts"])
@pytest.mark.parametrize("size", SIZES)
async def test_words_do_not_break_in_tables(chromium: Browser, site: Path, name: str, size: str) -> None:
    async with shown(chromium, site, name, size=size) as (page, _):
        assert await page.locator("article td").count() > 0
        assert await page.evaluate(WORDS) == []
        assert "code>" not in await page.inner_text("article")
