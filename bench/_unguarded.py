"""A browser without the guard, for the cost of the guard: no interception of requests and no wall in front of it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from exact.config import BrowserConfig
from exact.environments.browser import Browser, find_browser
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.launch.launch import chromium_arguments
from exact.environments.browser.launch.pipe import shared_pipe
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.page.downloads import LocalDownloadStore


class NoInterceptor(RequestInterceptor):
    """An interceptor that lets every request pass unseen."""

    async def start(self) -> None:
        pass


@contextlib.asynccontextmanager
async def unguarded(config: BrowserConfig, hosts: Mapping[str, str]) -> AsyncIterator[Browser]:
    """Run a browser without the guard while the block runs. `hosts`: names of local servers."""
    with tempfile.TemporaryDirectory() as folder:
        async with start_driver() as playwright, shared_pipe(str(find_browser()), Path(folder)) as (program, pipe):
            browser = await playwright.chromium.launch(executable_path=program, args=chromium_arguments(hosts))
            try:
                if pipe:
                    await pipe.begin()
                cdp = pipe or await browser.new_browser_cdp_session()
                yield Browser(browser, NoInterceptor(cdp), LocalDownloadStore(folder, cdp), cdp, pipe=pipe)
            finally:
                await browser.close()
