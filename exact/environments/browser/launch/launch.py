"""The launch of a browser that ends with this process."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig
from exact.environments.browser.launch.context import Devices, context_options, device_options, grant_permissions, no_sandbox
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.pipe import SharedPipe, shared_pipe
from exact.environments.browser.launch.user_profile import UserProfile, find_profile, remove_profile
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.dial import Dialler
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.policy import RequestPolicy
from exact.environments.browser.network.recording import recording_of
from exact.environments.browser.network.wall import WALLED, Wall
from exact.environments.browser.page.cdp import Cdp
from exact.environments.browser.page.clipboard import Clipboard, SharedClipboard
from exact.environments.browser.page.downloads import DownloadStore, LocalDownloadStore
from exact.errors import EnvironmentFailure
from exact.machine import kill, scratch
from exact.origins import host_name

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import BrowserContext, CDPSession, Page, Playwright

    from exact.environments.browser.page.cdp import CdpConnection

_DISABLED = (
    # Frames of other sites stay in the page's process, in which the page's session sees them; the interceptor separates origins.
    *("IsolateOrigins", "site-per-process"),
    # Documents that the interceptor fulfills have no network address, and would count as foreign to their own server.
    *("LocalNetworkAccessChecks", "LocalNetworkAccessChecksWebSockets", "LocalNetworkAccessForWorkers"),
    *("LocalNetworkAccessForNavigations", "LocalNetworkAccessForSubframeNavigations"),
    # Aborts redirects with a preflight while Fetch intercepts.
    "AvoidCorsURLLoaderRestartOnRedirect",
    # Aborts a form's POST that is redirected to another origin, whose Origin header becomes `null`, while Fetch intercepts.
    "BlockOriginHeaderModificationOnRedirect",
    # Send no requests but those of the task.
    *("HttpsUpgrades", "HttpsFirstBalancedModeAutoEnable", "PreconnectToSearch", "OptimizationHints", "NetworkTimeServiceQuerying"),
    *("Translate", "MediaRouter", "AimEnabled", "LensOverlay", "FedCm"),
    # Playwright's own list, which this one replaces: Chromium uses the last list only.
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "PaintHolding", "ThirdPartyStoragePartitioning"),
)
_FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-smooth-scrolling",
    "--disable-site-isolation-trials",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    f"--disable-features={','.join(_DISABLED)}",
)

UserState = Callable[[Iterable[str]], Awaitable[dict[str, Any]]]
"""Returns cookies and storage for some origins, in the form of Playwright's `storage_state`."""
_CLOSE_SECONDS = 10.0
"""Seconds that a context, or the browser, may take to close."""


class Browser:
    """A running browser with the interceptor of its requests, made by `launch`."""

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
        self._closing: set[asyncio.Task[None]] = set()

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

    def admit(self, context: BrowserContext, policy: RequestPolicy) -> None:
        """Let a context connect to destinations that a policy allows, and to no others."""
        if wall := self._walls.get(context):
            wall.follow(policy)

    async def accept_downloads(self, context: str) -> None:
        """Let a context, by its CDP id, download into the store."""
        options = {"behavior": "allowAndName", "browserContextId": context, "downloadPath": self.store.folder, "eventsEnabled": True}
        await self._cdp.send("Browser.setDownloadBehavior", options)

    async def attach(self, page: Page) -> Cdp:
        """Return a new session with a page. Raises Playwright's Error."""
        return await self._pipe.attach(await target_of(page)) if self._pipe else await page.context.new_cdp_session(page)

    async def prepare_page(self, cdp: Cdp, config: BrowserConfig) -> None:
        """Set the properties of a page besides the options of its context."""

    def clipboard(self) -> Clipboard | None:
        """Return a clipboard for a new environment; None if it has the browser to itself."""
        return Clipboard(self._clipboard)

    async def close_context(self, context: BrowserContext) -> None:
        """Close a context and delete its storage. A context that does not answer ends with the browser; only its connections are closed."""
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_CLOSE_SECONDS):
                    await context.close()
        finally:
            if wall := self._walls.pop(context, None):
                wall.close()

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


async def _process(cdp: CDPSession | CdpConnection) -> int:
    """Return the process id of a browser; 0 if the browser does not report it."""
    found = (await cdp.send("SystemInfo.getProcessInfo"))["processInfo"]
    return next((int(each["id"]) for each in found if each["type"] == "browser"), 0)


async def _end(browser: PlaywrightBrowser, process: int) -> None:
    """Close a browser. End its process if it does not close in time."""
    from playwright.async_api import Error

    closing = asyncio.ensure_future(browser.close())
    try:
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.shield(closing)
            return
        if process:
            with suppress(ProcessLookupError):
                kill(process)
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await closing
    finally:
        closing.cancel()


async def _close(making: Awaitable[BrowserContext]) -> None:
    from playwright.async_api import Error

    with suppress(Error):  # it was never opened, or is gone with the browser
        await (await making).close()


@asynccontextmanager
async def launch(config: BrowserConfig, hosts: Mapping[str, str] | None = None, *, pins: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Run a browser while the block runs. No process of it remains afterwards, even if this process is killed.

    `hosts`: names of local servers, as in PageSetup. `pins`: pins of trusted public keys, as in Outside. Raises EnvironmentFailure if no
    browser is found, or the browser or its driver does not start.
    """
    if config.cdp_url:
        from exact.environments.browser.launch.connect import connect

        async with connect(config, hosts or {}) as connected:
            yield connected
        return
    if config.headed and sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise EnvironmentFailure("a browser window needs a screen, and DISPLAY is not set: leave --watch out, or use xvfb-run")
    executable, hosts = find_browser(config.headed), hosts or {}
    dialler, deny = Dialler(config.proxy), DenyList(config.deny)

    async with AsyncExitStack() as last:
        folder = last.enter_context(scratch("browser"))
        downloads, artifacts, temporary = (folder / name for name in ("downloads", "artifacts", "temporary"))
        for each in (downloads, artifacts, temporary):  # a browser that is killed does not remove its own folders
            each.mkdir()
        playwright = await last.enter_async_context(start_driver())
        nowhere = Wall(dialler, hosts, deny)
        last.callback(nowhere.close)
        options: dict[str, Any] = {
            "headless": not config.headed,
            "args": [*chromium_arguments({}), f"--proxy-server={nowhere.address}", *WALLED, *pin_arguments(pins)],
            # a page that changes its address without end holds up others
            "ignore_default_args": ["--disable-ipc-flooding-protection"],
            "env": _environment(temporary),
            "artifacts_dir": artifacts,
            "handle_sigint": False,
        }
        apart = not config.headed and config.login.certificate is None  # Playwright's own proxy for certificates is outside
        browser, pipe = await _start(playwright, executable, folder, options, last, apart=apart)

        async def make_wall(config: BrowserConfig) -> Wall:
            plain_tls = config.login.certificate is None
            return Wall(dialler, hosts, deny, plain_tls=plain_tls, listening=await pipe.port() if pipe else None)

        process = 0
        try:
            if pipe:
                await pipe.begin()
            cdp = pipe or await browser.new_browser_cdp_session()
            process = await _process(cdp)
            last.push_async_callback(remove_profile, await find_profile(cdp))
            interceptor = RequestInterceptor(cdp, recording_of(config.recording))
            await interceptor.start()
            try:
                store = LocalDownloadStore(str(downloads), cdp)
                user = UserProfile(playwright, executable, config.profile, folder / "profile", nowhere.address) if config.profile else None
                made = Browser(browser, interceptor, store, cdp, make_wall, pipe=pipe, devices=playwright.devices, user_state=user)
                last.callback(made.close_walls)
                yield made
            finally:
                interceptor.stop()
        finally:
            await _end(browser, process)


async def _start(
    playwright: Playwright, executable: Path, folder: Path, options: dict[str, Any], last: AsyncExitStack, *, apart: bool
) -> tuple[PlaywrightBrowser, SharedPipe | None]:
    """Start a browser, in a separate network namespace if that works. Raises EnvironmentFailure."""
    from playwright.async_api import Error

    async with AsyncExitStack() as own:
        program, pipe = await own.enter_async_context(shared_pipe(str(executable), folder, apart=apart))
        try:
            browser = await _launched(playwright.chromium.launch(executable_path=program, **options))
        except Error as error:
            if not (pipe and pipe.is_apart):
                raise EnvironmentFailure(f"{executable} does not start: {_first_line(error)}: try `{executable} --version`") from error
        else:
            last.push_async_exit(own.pop_all())
            return browser, pipe
    return await _start(playwright, executable, folder, options, last, apart=False)


async def _launched(launching: Awaitable[PlaywrightBrowser]) -> PlaywrightBrowser:
    """Return a browser once it has started. When the start is abandoned, close it and delete its profile, which its driver may leave."""
    from playwright.async_api import Error

    started = asyncio.ensure_future(launching)
    try:
        return await asyncio.shield(started)
    except asyncio.CancelledError:
        with suppress(Error):
            browser = await started
            profile = await find_profile(await browser.new_browser_cdp_session())
            await _end(browser, 0)
            await remove_profile(profile)
        raise


def pin_arguments(pins: Iterable[str]) -> list[str]:
    """Return Chromium's arguments that accept certificates with pinned public keys."""
    found = list(pins)
    return [f"--ignore-certificate-errors-spki-list={','.join(found)}"] if found else []


def chromium_arguments(hosts: Mapping[str, str]) -> list[str]:
    """Return Chromium's arguments, besides Playwright's own."""
    found = [*_FLAGS, *no_sandbox()]
    if hosts:
        rules = [f"MAP {name} {address}" for given, address in hosts.items() for name in spellings(given)]
        found.append(f"--host-resolver-rules={','.join(rules)}")
    return found


_PASSED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|DISPLAY|WAYLAND_DISPLAY|XAUTHORITY|DBUS_\w+|XDG_\w+|GTK_\w+|FONTCONFIG_\w+"
    r"|LD_LIBRARY_PATH|SSL_CERT_(?:FILE|DIR)|SSLKEYLOGFILE|CHROME_\w+|MESA_\w+|LIBGL_\w+|VK_\w+",
    re.IGNORECASE,
)
"""Our environment variables that the browser gets; keys and tokens of services are not among them."""


def spellings(host: str) -> tuple[str, str]:
    """Return a name, or `name:port`, without and with a dot at the end of the name: the browser takes these for different names."""
    name, colon, port = host.partition(":")
    return f"{host_name(name)}{colon}{port}", f"{host_name(name)}.{colon}{port}"


def _environment(temporary: Path) -> dict[str, str | float | bool]:
    """Return the browser's environment variables: those that it needs, and the folder for temporary files."""
    environment: dict[str, str | float | bool] = {name: value for name, value in os.environ.items() if _PASSED.fullmatch(name)}
    return {**environment, "TMPDIR": str(temporary)}


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].removeprefix("BrowserType.launch: ").rstrip(".: ")
