"""A browser without the guard, for the cost of the guard: no interception of requests and no wall in front of it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from typing import Any

from exact.config import BrowserConfig
from exact.environments.browser import Browser, find_browser
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.launch.launch import chromium_arguments
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.page.downloads import LocalDownloadStore


class NoInterceptor(RequestInterceptor):
    """An interceptor that lets every request pass unseen."""

    async def start(self) -> None:
        pass


@contextlib.asynccontextmanager
async def unguarded(config: BrowserConfig, hosts: Mapping[str, str]) -> AsyncIterator[Browser]:
    """Run a browser without the guard while the block runs. `hosts`: names of local servers."""
    async with start_driver() as playwright:
        options: dict[str, Any] = {"executable_path": find_browser(), "args": chromium_arguments(hosts)}
        browser = await playwright.chromium.launch(**options)
        try:
            cdp = await browser.new_browser_cdp_session()
            with tempfile.TemporaryDirectory() as folder:
                yield Browser(browser, NoInterceptor(cdp), LocalDownloadStore(folder, cdp), cdp)
        finally:
            await browser.close()
