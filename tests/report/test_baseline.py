"""Reports, suites and the live list look as they did when somebody last looked at them.

The baselines are small pictures, compared coarsely: another font moves letters by pixels, and that is no fault; a lost panel, a lost
colour or an overlap is. To renew them after a change that was meant: EXACT_BASELINES=1 pytest tests/report/test_baseline.py, then look
at what changed.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from playwright.async_api import Browser, Page

from exact.report import build_index, build_report
from exact.runs.journal.store import RunFolder
from tests.report.conftest import Show
from tests.report.journals import mixed_run
from tests.report.live.test_live import served
from tests.report.test_head import DESKTOP, KINDS, TELEPHONE

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOLDER = Path(__file__).parent / "baselines"
GRID = 16
"""Pixels of a side of the blocks whose mean colours are compared."""
MEAN, WORST = 4.0, 0.04
"""Of 255: how far all blocks may be off on average; and the share of blocks that may be off by more than 20."""
VIEWS: dict[str, dict[str, object]] = {
    "light": {"color_scheme": "light", "viewport": {"width": 1280, "height": 1400}},
    "dark": {"color_scheme": "dark", "viewport": {"width": 1280, "height": 1400}},
    "telephone": {"color_scheme": "light", "viewport": {"width": 390, "height": 1600}},
}


def blocks(picture: Image.Image) -> np.ndarray:
    """Mean colours of blocks of GRID pixels."""
    width, height = picture.width // GRID * GRID, picture.height // GRID * GRID
    pixels = np.asarray(picture.convert("RGB").crop((0, 0, width, height)), dtype=float)
    found: np.ndarray = pixels.reshape(height // GRID, GRID, width // GRID, GRID, 3).mean(axis=(1, 3))
    return found


def alike(one: Image.Image, other: Image.Image) -> bool:
    if one.size != other.size:
        return False
    off = np.abs(blocks(one) - blocks(other)).max(axis=2)
    return bool(off.mean() <= MEAN and (off > 20).mean() <= WORST)


@pytest.mark.parametrize("name", VIEWS)
async def test_a_report_looks_as_it_did(show: Show, shop: RunFolder, name: str) -> None:
    async with show(shop, "#node=1", reduced_motion="reduce", **VIEWS[name]) as page:
        await page.evaluate("scrollTo(0, 0)")
        picture = Image.open(io.BytesIO(await page.screenshot()))
    compare(picture, name)


def compare(picture: Image.Image, name: str) -> None:
    """Set a picture against the kept one, or keep it if that was asked for."""
    path = FOLDER / f"{name}.webp"
    if os.environ.get("EXACT_BASELINES"):
        path.parent.mkdir(exist_ok=True)
        picture.convert("RGB").save(path, "WEBP", quality=60)
    with Image.open(path) as kept:
        assert alike(picture, kept.convert("RGB")), f"{name} looks otherwise than {path.name}: see this file's head"


SIDES: dict[str, dict[str, object]] = {
    f"{width}_{scheme}": {"viewport": viewport, "color_scheme": scheme}
    for width, viewport in (("wide", DESKTOP), ("narrow", TELEPHONE))
    for scheme in ("light", "dark")
}


async def first_view(page: Page, address: str, shown: str) -> Image.Image:
    """Open an address, wait for what it shows, and take the first view of it."""
    await page.goto(address)
    await page.locator(shown).first.wait_for()
    picture = Image.open(io.BytesIO(await page.screenshot()))
    await page.close()
    return picture


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("what", ["solved", "failed", "refused", "suite", "list"])
async def test_a_first_view_looks_as_it_did(chromium: Browser, tmp_path: Path, what: str, side: str) -> None:
    page = await chromium.new_page(reduced_motion="reduce", **SIDES[side])  # type: ignore[arg-type]
    if what == "list":
        mixed_run(tmp_path / "run")
        with served(tmp_path) as address:
            picture = await first_view(page, f"{address}/", ".attempts .ending")
    elif what == "suite":
        picture = await first_view(page, build_index(mixed_run(tmp_path / "run")).as_uri(), ".ending")
    else:
        run = KINDS[what][0](tmp_path / "run")
        picture = await first_view(page, build_report(run, run.manifest.tasks[0]).as_uri(), ".ending")
    compare(picture, f"{what}_{side}")


async def test_lost_content_is_noticed(show: Show, shop: RunFolder) -> None:
    async with show(shop, "#node=1", reduced_motion="reduce", **VIEWS["light"]) as page:
        await page.evaluate("scrollTo(0, 0); document.getElementById('panel').replaceChildren()")
        picture = Image.open(io.BytesIO(await page.screenshot()))
    with Image.open(FOLDER / "light.webp") as kept:
        assert not alike(picture, kept.convert("RGB"))


async def test_the_other_colours_are_noticed() -> None:
    with Image.open(FOLDER / "light.webp") as light, Image.open(FOLDER / "dark.webp") as dark:
        assert not alike(light.convert("RGB"), dark.convert("RGB"))
