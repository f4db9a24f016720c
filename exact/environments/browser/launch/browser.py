"""A running browser, with contexts that connect to nothing but what a gate allows."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from statistics import median
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from exact.config import BrowserConfig
from exact.environments.browser.launch.options import Devices, context_options, device_options, grant_permissions
from exact.environments.browser.launch.pipe import SharedPipe
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.isolation import Wall
from exact.environments.browser.page.cdp import Cdp
from exact.environments.browser.page.clipboard import Clipboard, SharedClipboard
from exact.environments.browser.page.downloads import DownloadStore
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import BrowserContext, CDPSession, Page

    from exact.environments.browser.page.cdp import CdpConnection

UserState = Callable[[Iterable[str]], Awaitable[dict[str, Any]]]
"""Returns cookies and storage for some origins, in the form of Playwright's `storage_state`."""
_CLOSE_AT_LEAST = 5.0
"""Least seconds that a context has to close; it has ten times the running median if that is more."""
CLOSE_SECONDS = 10.0
"""Seconds that a context, or the browser, may take to close."""


class Browser:
    """A running browser with the interceptor of its requests, made by `launch`."""

    context_id = ""
    """CDP id of the only context of a browser that was restored with its pages; empty if contexts are opened."""

    def __init__(
        self,
        playwright: PlaywrightBrowser,
        interceptor: RequestInterceptor,
        store: DownloadStore,
        cdp: CDPSession | CdpConnection,
        make_wall: Callable[[BrowserConfig], Awaitable[Wall]] | None = None,
        *,
        pipe: SharedPipe | None = None,
        devices: Devices | None = None,
        user_state: UserState | None = None,
    ) -> None:
        """Wrap a browser of Playwright's.

        `cdp`: the browser's own session. `pipe`: a connection for sessions with pages that do without Playwright's driver. `make_wall`
        makes the wall of a new context. `devices`: those that can be emulated. `user_state` returns the log-in of the person whose browser
        or profile it is.
        """
        self.devices, self.user_state = devices or {}, user_state
        self.playwright, self.interceptor, self.store, self._cdp = playwright, interceptor, store, cdp
        self._make_wall, self._pipe = make_wall, pipe
        self._walls: dict[BrowserContext, Wall] = {}
        self._clipboard = SharedClipboard(playwright)
        self._sessions = WeakKeyDictionary["Page", Cdp]()
        """Our sessions with pages."""
        self._closing: set[asyncio.Task[None]] = set()
        self._closes: deque[float] = deque((0.1,), maxlen=31)
        """Seconds that the last contexts took to close."""

    async def open_context(self, config: BrowserConfig, scripts: Iterable[str], origins: Sequence[str] = ()) -> tuple[BrowserContext, Page]:
        """Open a context that runs `scripts` first in every document. Return it and its first page.

        `origins`: those of the task, which get the permissions. The context is closed again if this fails or is cancelled. Raises
        UsageError for invalid options.
        """
        options, wall = context_options(config, origins), await self._make_wall(config) if self._make_wall else None
        options |= device_options(config, self.devices)
        if wall:
            options["proxy"] = {"server": wall.address}
        making = asyncio.ensure_future(self.playwright.new_context(**options))
        try:
            context = await asyncio.shield(making)
            if wall:
                self._walls[context] = wall
            if config.permissions:
                await grant_permissions(context, config.permissions, origins)
            for script in scripts:
                await context.add_init_script(script)
            return context, await context.new_page()
        except BaseException:
            closing = asyncio.ensure_future(_close(making))  # not waited for: the caller was cancelled, or the browser does not answer
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
            if wall:
                self._walls = {each: other for each, other in self._walls.items() if other is not wall}
                wall.close()
            raise

    @property
    def pages(self) -> list[Page]:
        """The pages of its first context, which a restored browser has from the start."""
        return self.playwright.contexts[0].pages

    def admit(self, context: BrowserContext, gate: Gate) -> None:
        """Let a context connect to destinations that a gate allows, and to no others."""
        if wall := self._walls.get(context):
            wall.follow(gate)

    async def accept_downloads(self, context: str) -> None:
        """Let a context, by its CDP id, download into the store."""
        options = {"behavior": "allowAndName", "browserContextId": context, "downloadPath": self.store.folder, "eventsEnabled": True}
        await self._cdp.send("Browser.setDownloadBehavior", options)

    async def attach(self, page: Page) -> Cdp:
        """Return a new session with a page. Raises Playwright's Error."""
        cdp = await self._pipe.attach(await target_of(page)) if self._pipe else await page.context.new_cdp_session(page)
        self._sessions[page] = cdp
        return cdp

    async def prepare_page(self, cdp: Cdp, config: BrowserConfig) -> None:
        """Set the properties of a page besides the options of its context."""

    def clipboard(self) -> Clipboard | None:
        """Return a clipboard for a new environment; None if it has the browser to itself."""
        return Clipboard(self._clipboard)

    async def close_context(self, context: BrowserContext) -> None:
        """Close a context and delete its storage. One that takes too long loses its renderers; if that does not help, its connections."""
        began, loop = asyncio.get_running_loop().time(), asyncio.get_running_loop()
        closing = asyncio.ensure_future(context.close())
        closing.add_done_callback(lambda done: done.cancelled() or done.exception())  # it may fail after it was given up
        try:
            if not (await asyncio.wait({closing}, timeout=max(_CLOSE_AT_LEAST, 10 * median(self._closes))))[0]:
                await asyncio.gather(*map(self._crash, context.pages))
                await asyncio.wait({closing}, timeout=CLOSE_SECONDS)
            if closing.done():
                self._closes.append(loop.time() - began)
                closing.result()
        finally:
            if wall := self._walls.pop(context, None):
                wall.close()

    async def _crash(self, page: Page) -> None:
        """End the renderer of a page that does not answer. A session of ours needs no answer of the browser before the command is sent."""
        from playwright.async_api import Error

        with suppress(Error, EnvironmentFailure, TimeoutError):
            async with asyncio.timeout(1.0):
                await (self._sessions.get(page) or await self.attach(page)).send("Page.crash")

    def close_walls(self) -> None:
        """End all connections of contexts that were not closed."""
        while self._walls:
            self._walls.popitem()[1].close()

    @property
    def is_gone(self) -> bool:
        """Return whether the browser has ended. Playwright hears of it later than the pipe."""
        return not self.playwright.is_connected() or (self._pipe is not None and self._pipe.is_lost)

    @property
    def is_apart(self) -> bool:
        """Whether it is in a separate network namespace, out of which only the walls of its contexts lead."""
        return self._pipe is not None and self._pipe.is_apart

    @property
    def version(self) -> str:
        """The version that the browser reports: `156.0.7000.0`."""
        return self.playwright.version


async def target_of(page: Page) -> str:
    """Return the CDP id of a page's target, which Playwright does not expose. Raises Playwright's Error."""
    cdp = await page.context.new_cdp_session(page)
    found = await cdp.send("Target.getTargetInfo")
    await cdp.detach()
    return str(found["targetInfo"]["targetId"])


async def _close(making: Awaitable[BrowserContext]) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it was never opened, or is gone with the browser
        await (await making).close()
