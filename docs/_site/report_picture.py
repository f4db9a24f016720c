"""Take the picture of a report that README and the first pages show.

Usage: python docs/_site/report_picture.py RUN. It is the report of the run's first task as a narrow window shows it, with the tree asked
for, so that it can be read on a telephone.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import async_playwright

from exact.environments.browser import find_browser
from exact.report import build_report
from exact.runs.journal.store import RunFolder

PICTURE = Path(__file__).parents[1] / "images" / "report.png"
WINDOW = {"width": 520, "height": 560}


async def main(run: RunFolder) -> None:
    """Write the picture, down to the end of the tree."""
    report = build_report(run, run.manifest.tasks[0])
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(find_browser()))
        page = await browser.new_page(viewport=WINDOW, device_scale_factor=2, color_scheme="light", reduced_motion="reduce")  # type: ignore[arg-type]
        await page.goto(report.as_uri())
        await page.locator("#ask").click()
        await page.evaluate("scrollTo(0, 0)")
        stage = await page.locator(".stage").bounding_box()
        assert stage is not None
        clip = {"x": 0.0, "y": 0.0, "width": float(WINDOW["width"]), "height": stage["y"] + stage["height"]}
        await page.screenshot(path=PICTURE, full_page=True, clip=clip)  # type: ignore[arg-type]
        await browser.close()


if __name__ == "__main__":
    asyncio.run(main(RunFolder.open(Path(sys.argv[1]))))
