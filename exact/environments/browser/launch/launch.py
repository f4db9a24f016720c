"""The launch of a browser that ends with this process."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig
from exact.environments.browser.launch.browser import CLOSE_SECONDS, Browser
from exact.environments.browser.launch.connect import connect
from exact.environments.browser.launch.driver import start_driver
from exact.environments.browser.launch.find import find_browser
from exact.environments.browser.launch.options import UserProfile, find_profile, no_sandbox, remove_profile
from exact.environments.browser.launch.pipe import SharedPipe, shared_pipe
from exact.environments.browser.network.deny import DenyList
from exact.environments.browser.network.dial import Dialler
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.isolation import WALLED, Wall
from exact.environments.browser.network.recording import recording_of
from exact.environments.browser.page.downloads import LocalDownloadStore
from exact.errors import EnvironmentFailure
from exact.machine import kill, remove_with, scratch
from exact.origins import host_name

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import CDPSession, Playwright

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
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(closing)
            return
        if process:
            with suppress(ProcessLookupError):
                kill(process)
        with suppress(Error, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await closing
    finally:
        closing.cancel()


@asynccontextmanager
async def launch(config: BrowserConfig, hosts: Mapping[str, str] | None = None, *, pins: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Run a browser while the block runs. No process of it remains afterwards, even if this process is killed.

    `hosts`: names of local servers, as in PageSetup. `pins`: pins of trusted public keys, as in Outside. Raises EnvironmentFailure if no
    browser is found, or the browser or its driver does not start.
    """
    if config.cdp_url:
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
            if profile := await find_profile(cdp):
                remove_with(folder, profile)
                last.push_async_callback(remove_profile, profile)
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
