"""Whatever a page, a model or a task says stays text."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from exact.report import build_report
from tests.report.conftest import Show
from tests.report.journals import hostile_run

pytestmark = pytest.mark.asyncio(loop_scope="session")

HOSTILE = {
    "script": "<script>alert(1)</script>",
    "closing": '</script><script>alert(2)</script><!--<script>"]]>',
    "image": "<img src=x onerror=alert(3)>'\" onload=alert(4)",
    "template": "{{ 7 * 7 }}{% raw %}${alert(5)}",
    "address": "javascript:alert(7)",
    "separators": "a\u2028alert(6)\u2029b",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
async def test_markup_is_shown_as_text_and_nothing_runs(tmp_path: Path, show: Show, text: str) -> None:
    async with show(hostile_run(tmp_path / "run", text), "#node=1") as page:
        visible = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
        await expect(page.locator("h1")).to_have_text(visible)
        await expect(page.locator("#panel pre").first).to_contain_text(visible)
        assert await page.evaluate("[...document.querySelectorAll('img, iframe, object')].every(e => e.src.startsWith('data:image/'))")
        assert await page.evaluate("[...document.querySelectorAll('a')].every(a => a.getAttribute('href').startsWith('#node='))")


async def test_control_characters_and_direction_marks_are_written_out(tmp_path: Path, show: Show) -> None:
    async with show(hostile_run(tmp_path / "run", "pay\x07 \x1b[31m \u202egnp.exe\u202c end")) as page:
        await expect(page.locator("h1")).to_have_text("pay␇ ␛[31m \\u202egnp.exe\\u202c end")
        assert "\u202e" not in await page.content()


async def test_a_line_of_a_megabyte_is_cut_and_harmless(tmp_path: Path, show: Show) -> None:
    run = hostile_run(tmp_path / "run", "<b>" * 350_000)
    assert build_report(run, run.manifest.tasks[0]).stat().st_size < 15_000_000
    async with show(run, viewport={"width": 900, "height": 700}) as page:
        assert await page.evaluate("document.documentElement.scrollWidth") <= 900
        await page.get_by_text("Observation").click()
        await expect(page.locator("#panel pre").first).to_contain_text("more characters are in the run's folder")


async def test_the_policy_admits_no_other_script(tmp_path: Path, chromium: object) -> None:
    run = hostile_run(tmp_path / "run", "x")
    path = build_report(run, run.manifest.tasks[0])
    path.write_text(path.read_text().replace("<main>", "<script>document.title = 'taken'</script><main>"))
    page = await chromium.new_page()  # type: ignore[attr-defined]
    await page.goto(path.as_uri())
    assert await page.title() != "taken"
    assert await page.locator(".card.selected").count() == 1
    await page.close()
