"""Opens reports in a headless browser and watches what they do."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, async_playwright

from exact.report import build_report
from exact.runs.journal.store import RunFolder
from tests.report.journals import shop_run

Show = Callable[..., AbstractAsyncContextManager[Page]]


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """Return a finished run over the tea shop. Do not change it."""
    return shop_run(tmp_path_factory.mktemp("shop") / "run")


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium(executable: str) -> AsyncIterator[Browser]:
    """Launch a plain browser, because a report needs nothing of exact."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable)
        yield browser
        await browser.close()


@pytest.fixture
def show(chromium: Browser) -> Show:
    """`async with show(run) as page`: its report, opened. Fails on a console message, an error, a dialog or a request."""

    @asynccontextmanager
    async def opened(run: RunFolder, link: str = "", **context: Any) -> AsyncIterator[Page]:
        path: Path = build_report(run, run.manifest.tasks[0])
        wrong: list[str] = []
        page = await chromium.new_page(**context)
        page.on("console", lambda message: wrong.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: wrong.append(request.url) if not request.url.startswith(("file:", "data:")) else None)
        try:
            await page.goto(path.as_uri() + link)
            yield page
            assert not wrong
        finally:
            await page.close()

    return opened
