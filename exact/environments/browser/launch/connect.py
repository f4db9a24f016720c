"""The connection to a browser that exact did not start: the user's Chrome, or a hosted one. It is not closed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig
from exact.environments.browser.launch.browser import Browser
from exact.environments.browser.launch.devtools import no_browser, shown, websocket_of
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.recording import recording_of
from exact.environments.browser.page.downloads import LocalDownloadStore
from exact.environments.sites.accounts import value_of
from exact.errors import EnvironmentFailure, UsageError
from exact.machine import scratch
from exact.origins import origin

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import BrowserContext

NO_WALL = (
    "browser.cdp_url: no wall stands around that browser: in search too, it may send what is no request "
    "(WebRTC, DNS queries, preconnections)"
)
"""Notice for a user who lets exact use their browser."""
_CONNECT_SECONDS, _CLOSE_SECONDS, _READ_SECONDS = 30.0, 10.0, 2.0
"""Seconds to connect, to disconnect, and to read the storage of a tab."""


@asynccontextmanager
async def connect(config: BrowserConfig, hosts: Mapping[str, str]) -> AsyncIterator[Browser]:
    """Use the browser at `browser.cdp_url` while the block runs. Its tabs and its default context stay as they are.

    Environments have separate contexts in it, which are closed. Requests of other contexts pass untouched. Raises UsageError if
    `hosts` maps names, which a running browser cannot be told, and EnvironmentFailure if no browser answers.
    """
    from playwright.async_api import Error

    if hosts:
        raise UsageError(f"browser.cdp_url: a running browser cannot be told where {next(iter(hosts))} is: let exact start the browser")
    address = value_of("browser.cdp_url", config.cdp_url, os.environ)
    endpoint = await websocket_of(address, seconds=_CONNECT_SECONDS)
    async with AsyncExitStack() as last:
        folder = last.enter_context(scratch("browser"))
        playwright = await last.enter_async_context(start_driver())
        try:
            browser = await playwright.chromium.connect_over_cdp(
                endpoint, no_defaults=True, artifacts_dir=folder / "artifacts", timeout=_CONNECT_SECONDS * 1000
            )
            last.push_async_callback(_disconnect, browser)
            async with asyncio.timeout(_CONNECT_SECONDS):
                cdp = await browser.new_browser_cdp_session()
                interceptor = RequestInterceptor(cdp, recording_of(config.recording), shared=True)
                await interceptor.start()
        except Error as error:
            raise no_browser(
                address, str(error).strip().removeprefix("BrowserType.connect_over_cdp: ").replace(endpoint, shown(endpoint))
            ) from error
        except TimeoutError as error:
            raise no_browser(address, f"no answer within {_CONNECT_SECONDS:g} s") from error
        await asyncio.to_thread((folder / "downloads").mkdir)
        try:
            store = LocalDownloadStore(str(folder / "downloads"), cdp)
            yield Browser(browser, interceptor, store, cdp, devices=playwright.devices, user_state=_UserState(browser))
        finally:
            interceptor.stop()
            with suppress(Error):  # the browser is gone
                await cdp.send("Fetch.disable")


class _UserState:
    """The log-in of the person whose browser it is: cookies of the default context, and the storage of open tabs."""

    def __init__(self, browser: PlaywrightBrowser) -> None:
        self._context: BrowserContext | None = browser.contexts[0] if browser.contexts else None

    async def __call__(self, origins: Iterable[str]) -> dict[str, Any]:
        """Return the default context's storage for some origins, in the form of `storage_state`. No page is opened."""
        from playwright.async_api import Error

        wanted, found = list(origins), dict[str, Any]()
        if self._context is None or not wanted:
            return {}
        for page in self._context.pages:
            here = origin(page.url)
            if here in wanted and here not in found:
                with suppress(Error, TimeoutError):  # a tab that does not answer, or was just closed
                    async with asyncio.timeout(_READ_SECONDS):
                        entries = await page.evaluate("Object.entries(localStorage)")
                        found[here] = [{"name": name, "value": value} for name, value in entries]
        try:
            cookies = await self._context.cookies(wanted)
        except Error as error:
            raise EnvironmentFailure(f"the browser at browser.cdp_url is gone: {str(error).splitlines()[0]}") from error
        return {"cookies": cookies, "origins": [{"origin": each, "localStorage": entries} for each, entries in found.items()]}


async def _disconnect(browser: PlaywrightBrowser) -> None:
    """Close the contexts that were opened and the connection. The browser keeps running."""
    from playwright.async_api import Error

    with suppress(Error, TimeoutError):
        async with asyncio.timeout(_CLOSE_SECONDS):
            await browser.close()
