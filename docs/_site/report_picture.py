"""Take the pictures of a report and of the live list that README and the documentation show.

Usage: python docs/_site/report_picture.py RUN. It is the report of the run's first task as a narrow window shows it, with the tree asked
for, so that it can be read on a telephone. With the address that `exact view` printed in place of RUN, it is the live list.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from playwright.async_api import async_playwright

from exact.environments.browser import find_browser
from exact.report import build_report
from exact.runs.journal.store import RunFolder

IMAGES = Path(__file__).parents[1] / "images"
WINDOW, WIDE = {"width": 520, "height": 560}, {"width": 1100, "height": 560}


async def report(run: RunFolder) -> None:
    """Write the picture, down to the end of the tree."""
    path = build_report(run, run.manifest.tasks[0])
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(find_browser()))
        page = await browser.new_page(viewport=WINDOW, device_scale_factor=2, color_scheme="light", reduced_motion="reduce")  # type: ignore[arg-type]
        await page.goto(path.as_uri())
        await page.locator("#ask").click()
        await page.evaluate("scrollTo(0, 0)")
        stage = await page.locator(".stage").bounding_box()
        assert stage is not None
        clip = {"x": 0.0, "y": 0.0, "width": float(WINDOW["width"]), "height": stage["y"] + stage["height"]}
        await page.screenshot(path=IMAGES / "report.png", full_page=True, clip=clip)  # type: ignore[arg-type]
        await browser.close()


async def live_list(address: str) -> None:
    """Write the picture of the live list, down to the end of its rows."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(find_browser()))
        page = await browser.new_page(viewport=WIDE, device_scale_factor=1.5, color_scheme="light")  # type: ignore[arg-type]
        await page.goto(address)
        await page.locator(".ending.searching").first.wait_for()
        await page.screenshot(path=IMAGES / "live_list.png")
        await browser.close()


if __name__ == "__main__":
    asyncio.run(live_list(sys.argv[1]) if sys.argv[1].startswith("http") else report(RunFolder.open(Path(sys.argv[1]))))
