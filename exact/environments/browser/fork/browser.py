"""A browser inside a sandbox, driven by Playwright outside of it."""

from __future__ import annotations

import asyncio
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.fork.init_process import DOWNLOADS
from exact.environments.browser.fork.relay import Relay
from exact.environments.browser.launch.browser import Browser, target_of
from exact.environments.browser.launch.launch import chromium_arguments
from exact.environments.browser.launch.options import context_options, grant_permissions, user_agent
from exact.environments.browser.network.dial import Destinations, Dialler
from exact.environments.browser.network.gate import Gate
from exact.environments.browser.network.interceptor import RequestInterceptor
from exact.environments.browser.network.recording import Recording
from exact.environments.browser.page.cdp import Cdp, CdpSession
from exact.environments.browser.page.clipboard import Clipboard
from exact.environments.browser.page.downloads import DownloadedFile
from exact.environments.browser.page.websocket import CdpState, WebSocketConnection
from exact.environments.sandbox.sandbox import Sandbox
from exact.environments.sandbox.sandboxes import IdleTimer
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import Browser as PlaywrightBrowser
    from playwright.async_api import BrowserContext, Page, Playwright

_FLAGS = (
    # The arguments of a browser that Playwright starts itself.
    *("--headless", "--hide-scrollbars", "--mute-audio", "--force-color-profile=srgb", "--disable-back-forward-cache"),
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    *("--disable-field-trial-config", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows"),
    *("--disable-renderer-backgrounding", "--disable-breakpad", "--disable-extensions", "--disable-default-apps"),
    *("--disable-hang-monitor", "--disable-ipc-flooding-protection", "--disable-popup-blocking", "--disable-prompt-on-repost"),
    *("--allow-pre-commit-input", "--metrics-recording-only", "--no-default-browser-check", "--password-store=basic"),
    *("--use-mock-keychain", "--no-service-autorun", "--unsafely-disable-devtools-self-xss-warnings", "--enable-unsafe-swiftshader"),
    # Its options for a context: ours is the browser's default one, which outlives the connection that a snapshot was taken over.
    "--force-prefers-reduced-motion",
    # For the sandbox. Two processes instead of four: a snapshot is smaller by a third, and taken and restored sooner.
    *("--in-process-gpu", "--enable-features=NetworkServiceInProcess2"),
    *("--no-sandbox", "--no-zygote", "--remote-debugging-port=0", "--user-data-dir=/tmp/profile"),
)
_NOTICED_SECONDS = 2.0
"""Seconds within which Playwright notices that a browser is gone, if it does at all."""
_DOWNLOADS = {"behavior": "allowAndName", "downloadPath": DOWNLOADS, "eventsEnabled": True}
_NO_SERVICE_WORKERS = "if (window.ServiceWorkerContainer) ServiceWorkerContainer.prototype.register = async () => {};"


def chromium_binary(found: Path, folder: Path = Path("/usr/lib/chromium")) -> Path:
    """Return the headless shell itself if `found` is Debian's script around it, which would be another process in every snapshot."""
    real = folder / "chromium-headless-shell"
    with found.open("rb") as file:
        script = file.read(2) == b"#!"
    return real if script and found.name == real.name and real.is_file() else found


def chromium_command(
    executable: str, config: BrowserConfig, hosts: Mapping[str, str], way_out: Sequence[str] = ("--no-proxy-server",)
) -> list[str]:
    """Return the command that starts Chromium in the sandbox. `way_out`: its arguments about the proxy."""
    language = (f"--lang={config.locale}", f"--accept-lang={config.locale}")
    named = user_agent(config)
    agent = (f"--user-agent={named}",) if named else ()
    size = (f"--window-size={config.width},{config.height}", f"--force-device-scale-factor={config.scale:g}")
    flags = dict.fromkeys([*_FLAGS, *way_out, *chromium_arguments(hosts), *language, *agent, *size])
    zone = config.locale.replace("-", "_")
    return ["/usr/bin/env", f"TZ={config.timezone}", f"LANGUAGE={zone}", executable, *flags, "about:blank"]


class InnerStore:
    """The downloaded files inside a sandbox."""

    folder = DOWNLOADS

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    async def take(self, id: str) -> DownloadedFile:
        return DownloadedFile(*await self._relay.digest(id))

    async def cancel(self, id: str) -> None:
        with suppress(EnvironmentFailure):  # it has just come to its end
            await self._relay.line.send("Browser.cancelDownload", {"guid": id})


class ConnectionState(NamedTuple):
    """The state of the connection to a browser when its snapshot was taken."""

    path: str
    """Path of the WebSocket address at which the browser listens."""
    line: CdpState
    started: bool
    """Whether requests were intercepted."""
    unanswered: tuple[dict[str, Any], ...]
    """Events of requests that had not been answered."""


class ForkedBrowser(Browser):
    """A Chromium in a sandbox, and the relay to it. Made by `connect`."""

    def __init__(
        self,
        playwright: PlaywrightBrowser,
        interceptor: RequestInterceptor,
        relay: Relay,
        talk: WebSocketConnection,
        context_id: str,
        *,
        targets: Sequence[str],
        artifacts: Path,
        has_outside: bool = False,
    ) -> None:
        """Drive a browser.

        `talk`: connection for sessions with pages. `targets`: CDP ids of the pages. `artifacts`: its trace folder. `has_outside`: whether
        there are servers outside of the sandbox.
        """
        super().__init__(playwright, interceptor, InnerStore(relay), relay.line)
        self.relay, self.context_id, self._talk = relay, context_id, talk
        self._only = (self.pages[0], targets[0]) if len(targets) == len(self.pages) == 1 else None
        self._started, self._artifacts, self._has_outside = False, artifacts, has_outside
        self._tasks: set[asyncio.Task[None]] = set()
        self.idle = IdleTimer(relay.sandbox)

    async def open_context(self, config: BrowserConfig, scripts: Iterable[str], origins: Sequence[str] = ()) -> tuple[BrowserContext, Page]:
        """Return the browser's default context and its first page. Requests are intercepted from now on."""
        self._started = True
        context = self.playwright.contexts[0]
        if config.geolocation:
            await context.set_geolocation(context_options(config, ())["geolocation"])
        if config.permissions:
            await grant_permissions(context, config.permissions, origins)
        context.on("page", self._opened)
        every = (_NO_SERVICE_WORKERS, *scripts)  # sent in this order, answered together
        await asyncio.gather(
            self.interceptor.start(),
            self._cdp.send("Browser.setDownloadBehavior", _DOWNLOADS),
            *(_reduce_motion(page) for page in context.pages),
            *(context.add_init_script(script) for script in every),
        )
        return context, context.pages[0]

    def admit(self, context: BrowserContext, gate: Gate) -> None:
        """Let the sandbox connect to destinations outside that a gate allows, and to no others."""
        if self._has_outside:
            self.relay.egress.admit(gate.rules.allowed, sockets=gate.socket_origins)
            self.relay.egress.listener = gate

    async def attach(self, page: Page) -> CdpSession:
        return await self._talk.attach(self._only[1] if self._only and self._only[0] is page else await target_of(page))

    async def accept_downloads(self, context: str) -> None:
        """Do nothing: `open_context` did it."""

    async def prepare_page(self, cdp: Cdp, config: BrowserConfig) -> None:
        """Set the locale of numbers and dates, which does not follow from Chromium's arguments."""
        from playwright.async_api import Error

        try:
            await cdp.send("Emulation.setLocaleOverride", {"locale": config.locale})
        except Error as error:
            if "already in effect" not in str(error):  # a popup shares its opener's process, which has it
                raise

    def clipboard(self) -> Clipboard | None:
        return None

    def _opened(self, page: Page) -> None:
        task = asyncio.ensure_future(_reduce_motion(page))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    @property
    def connection(self) -> ConnectionState:
        """The state of the connection, while the relay is held."""
        return ConnectionState(self.relay.path, self.relay.line.state, self._started, self.interceptor.unanswered)

    async def close_context(self, context: BrowserContext) -> None:
        """Do nothing: the context ends with the sandbox."""

    async def close(self) -> None:
        """Close the connection, but not the sandbox. Never raises."""
        from playwright.async_api import Error

        self.interceptor.stop()
        await self.idle.stop()
        await self.relay.close()  # first: a paused browser would not answer to being closed
        with suppress(Error):
            await self.playwright.close()
        await asyncio.to_thread(shutil.rmtree, self._artifacts, ignore_errors=True)


async def _reduce_motion(page: Page) -> None:
    """Ask for reduced motion. There is a flag for it, which Playwright overrides."""
    from playwright.async_api import Error

    with suppress(Error):  # closed already
        await page.emulate_media(reduced_motion="reduce")


async def connect(
    playwright: Playwright,
    sandbox: Sandbox,
    artifacts: Path,
    *,
    destinations: Destinations | None = None,
    recording: Recording | None = None,
    connection: ConnectionState | None = None,
    dialler: Dialler | None = None,
    seconds: float = 120.0,
) -> ForkedBrowser:
    """Connect to the Chromium in a sandbox once it is ready. Raises EnvironmentFailure with the reason why it is not.

    `destinations`, `dialler`: as in Relay; without destinations nothing outside is reached. `artifacts`: the folder in which each
    environment has a folder for Playwright, whose default folder would remain if the environment ends meanwhile. `connection`: the state of
    the snapshot that the sandbox is restored from.
    """
    from playwright.async_api import Error

    own = artifacts / secrets.token_hex(8)
    relay = Relay(sandbox, destinations, connection.line if connection else None, dialler)
    try:
        address = await relay.connect(path=connection.path if connection else "", seconds=seconds)
        line = await relay.speak()
        browser, talk, found = await asyncio.gather(
            _over_cdp(playwright, address, relay, seconds, own), relay.talk(), line.send("Target.getTargets")
        )
    except BaseException as error:
        await relay.close()
        await asyncio.to_thread(shutil.rmtree, own, ignore_errors=True)
        if not isinstance(error, Error):
            raise
        raise EnvironmentFailure(f"the environment does not answer: {relay.lost or str(error).splitlines()[0]}") from error
    pages = [info for info in found["targetInfos"] if info["type"] == "page"]
    interceptor = RequestInterceptor(line, recording)
    if connection and connection.started:
        interceptor.continue_from(connection.unanswered)
    targets, context = [info["targetId"] for info in pages], next((info.get("browserContextId", "") for info in pages), "")
    outside = destinations is not None
    return ForkedBrowser(browser, interceptor, relay, talk, context, targets=targets, artifacts=own, has_outside=outside)


async def _over_cdp(playwright: Playwright, address: str, relay: Relay, seconds: float, artifacts: Path) -> PlaywrightBrowser:
    """Connect Playwright to the browser.

    Raises EnvironmentFailure if the environment ends meanwhile, Playwright's Error if it does not connect. A cancelled call waits
    until Playwright has given up, which is soon, because the relay is closed: Playwright raises the error of a browser that ends before
    it was handed over in the next call of any of its browsers. Playwright does not notice a browser that ends while its pages are
    attached, and waits for its timeout; this function does not wait for that.
    """
    connecting = asyncio.ensure_future(playwright.chromium.connect_over_cdp(address, timeout=seconds * 1000, artifacts_dir=artifacts))
    connecting.add_done_callback(lambda done: done.cancelled() or done.exception())
    ended = asyncio.ensure_future(relay.ended())
    try:
        await asyncio.wait((connecting, ended), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        await relay.close()
        raise
    finally:
        ended.cancel()
        await asyncio.wait((connecting,), timeout=_NOTICED_SECONDS)
    if not connecting.done():
        raise EnvironmentFailure(f"the environment is gone: {relay.lost or 'it was let go'}")
    return connecting.result()
