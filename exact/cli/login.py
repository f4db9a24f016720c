"""`exact login`: log in to a site by hand, in a window, and save the session."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urljoin, urlsplit

import click
import msgspec

from exact.cli.partners import agreed, proposal
from exact.cli.person import next_line
from exact.cli.signals import run_async
from exact.cli.task_files import is_task_file
from exact.cli.terminal import echo
from exact.config import LoginConfig
from exact.errors import EnvironmentFailure, UsageError
from exact.origins import is_web, origin, origins
from exact.untrusted import BoundedPattern, compiled

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Page, Request, StorageState

_POLL = 0.1
"""Seconds between two looks at the pages."""


@click.command()
@click.argument("site", metavar="SITE")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    help="File to save to. Default: the one that the site file names, else in ~/.config/exact/logins.",
)
@click.option(
    "--proof",
    metavar="TEXT",
    help="Save as soon as the page shows a text or an element, such as '[link \"Log out\"]'. Default: login.proof of the site file.",
)
@click.option("--until", metavar="REGEX", help="Save as soon as the address matches. Default: save when you press Enter.")
@click.option("--seconds", default=600.0, show_default=True, help="Seconds to wait for the proof, or for a matching address.")
@click.option("--headless", is_flag=True, help="Show no window, for sites that log in without input.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the file. What to do in the window is told on stderr.")
def login(
    site: str, out: Path | None, proof: str | None, until: str | None, seconds: float, headless: bool, as_json: bool
) -> int:  # fmt: skip
    """Log in to SITE by hand and save its cookies and storage.

    SITE is an address or a site file, whose log-in page (login.url) is opened. Requests are neither restricted nor recorded, so that single
    sign-on works. Other origins that the site's pages send to are proposed as login.partner_origins. Nothing is saved before the log-in is
    proven, nor a session without cookies and storage. The file is readable by you alone (mode 0600) and must lie outside of any run.
    Refer to it in the site file: browser: {login: {state: FILE}}.
    """
    pattern = _compiled(until)
    url, config, hosts, given = _target(site)
    path = (out or given or _default(url)).expanduser().absolute()
    _refuse_run(path)
    sign = LoginSign(proof or ("" if pattern else config.proof), pattern, _compiled(config.expired or None), seconds)
    if not sign.waits and not sys.stdin.isatty():
        raise UsageError("no terminal to press Enter in: give what a logged-in page shows with --proof, or its address with --until")
    spoken = run_async(_login(urljoin(url, config.url), path, sign, hosts=hosts, headless=headless, quiet=as_json))
    partners = sorted(spoken - {*origins(*config.secret_origins, *config.partner_origins)})
    if as_json:
        echo(json.dumps({"state": str(path), "partner_origins": partners}))
        return 0
    echo(f"saved to {path}\nrefer to it in the site file: browser: {{login: {{state: {path}}}}}")
    if partners:
        echo(f"its pages also sent to {', '.join(partners)}: after a secret was typed, that is refused in a run")
        partners = agreed(partners) if sys.stdin.isatty() else partners
        echo(f"to allow it: {proposal(partners)}" if partners else "none is allowed")
    return 0


class LoginSign(NamedTuple):
    """Signs of a finished log-in."""

    proof: str
    """Text or element that a logged-in page shows; empty if there is none."""
    until: BoundedPattern | None
    """Addresses of logged-in pages."""
    expired: BoundedPattern | None
    """Addresses of pages that are not logged in."""
    seconds: float
    """Seconds to wait for either."""

    @property
    def waits(self) -> bool:
        """Return whether the log-in is noticed, so that no key need be pressed."""
        return bool(self.proof or self.until)

    @property
    def words(self) -> str:
        """Describe the awaited sign."""
        return f"no page showed {self.proof!r}" if self.proof else f"no address matched {self.until.pattern if self.until else ''!r}"

    async def is_seen(self, page: Page) -> bool:
        """Return whether a page shows it."""
        from exact.environments.browser.login import is_shown

        if self.until and not self.until.found_in(page.url, otherwise=False):
            return False
        return not self.proof or await is_shown(page, self.proof)


def _compiled(until: str | None) -> BoundedPattern | None:
    return compiled(until, "--until") if until else None


def _target(site: str) -> tuple[str, LoginConfig, dict[str, str], Path | None]:
    """Return the address of a site, its log-in, its host names, and the session file that its site file names, if any."""
    if not is_task_file(site):
        url = site if "://" in site else f"https://{site}"
        if not is_web(url):
            raise UsageError(f"invalid address {site!r}: write https://host")
        return url, LoginConfig(), {}, None
    from exact.benchmarks.own.files import read_site

    site_file = read_site(Path(site))
    if not is_web(site_file.url):
        raise UsageError(f"invalid url {site_file.url!r} in {site}: write https://host")
    config = msgspec.convert(site_file.browser.get("login") or {}, LoginConfig)
    state = Path(site).resolve().parent / Path(config.state).expanduser() if config.state else None
    hosts = {**site_file.hosts, **(site_file.outside.hosts if site_file.outside else {})}
    return site_file.url, config, hosts, state


def _default(url: str) -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "exact" / "logins" / f"{urlsplit(url).netloc.replace(':', '-')}.json"


def _refuse_run(path: Path) -> None:
    """Raise UsageError if a path is in a run folder, because run folders are shared."""
    for folder in path.parents:
        if (folder / "run.json").exists():
            raise UsageError(f"{path} is in the run {folder}: save log-ins elsewhere")


async def _login(url: str, path: Path, sign: LoginSign, *, hosts: dict[str, str], headless: bool, quiet: bool) -> set[str]:
    """Log in and save the session. Return the other origins to which the site's pages sent more than addresses of parts."""
    from playwright.async_api import Error

    from exact.environments.browser.launch.driver import start_driver
    from exact.environments.browser.launch.find import find_browser
    from exact.environments.browser.launch.launch import chromium_arguments

    if not headless and sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise EnvironmentFailure(
            "a browser window needs a screen, and DISPLAY is not set: run this on a machine with a screen, and copy the file"
        )
    async with start_driver() as playwright:
        try:
            browser = await playwright.chromium.launch(
                executable_path=find_browser(not headless), headless=headless, args=chromium_arguments(hosts)
            )
            context = await browser.new_context(no_viewport=not headless)
            spoken, site = set[str](), origin(url)
            context.on("request", lambda request: spoken.add(origin(request.url)) if _tells(request) else None)
            await (await context.new_page()).goto(url)
            state = await _state_after(browser, context, sign, quiet)
            await browser.close()
        except Error as error:
            raise EnvironmentFailure(f"the browser was closed, or could not open {url}: {str(error).splitlines()[0]}") from error
    if _is_empty(state):
        raise EnvironmentFailure(
            f"the log-in at {url} left neither cookies nor local storage: nothing was saved: log in by browser.login.script instead"
        )
    write_private(path, json.dumps(state))
    return spoken - {site, ""}


def _tells(request: Request) -> bool:
    """Return whether a request sends what a page may have made: a body, or a query by a script."""
    return request.method != "GET" or (request.resource_type in ("fetch", "xhr", "websocket", "eventsource") and "?" in request.url)


async def _state_after(browser: Browser, context: BrowserContext, sign: LoginSign, quiet: bool) -> StorageState:
    """Return cookies and storage once the log-in is done. Raises EnvironmentFailure if it is not."""
    if sign.waits:
        return await _wait_for(sign, browser, context, quiet)
    echo("Log in in the window, then press Enter here.", err=quiet)
    await next_line()
    pages = context.pages
    if not pages:
        raise EnvironmentFailure("the window was closed before the log-in: nothing was saved")
    if sign.expired and all(sign.expired.found_in(page.url, otherwise=False) for page in pages):
        raise EnvironmentFailure(f"{pages[-1].url} is not logged in, by login.expired: nothing was saved")
    return await context.storage_state()


async def _wait_for(sign: LoginSign, browser: Browser, context: BrowserContext, quiet: bool) -> StorageState:
    """Wait until a page shows the sign and something is to be saved, which a page may store a moment later."""
    echo("Log in in the window. It is closed, and the log-in saved, as soon as that is done.", err=quiet)
    state: StorageState = {}
    try:
        async with asyncio.timeout(sign.seconds):
            while not any([await sign.is_seen(page) for page in context.pages]) or _is_empty(state := await context.storage_state()):
                if not browser.is_connected() or not context.pages:
                    raise EnvironmentFailure("the window was closed before the log-in: nothing was saved")
                await asyncio.sleep(_POLL)
    except TimeoutError as error:
        if any([await sign.is_seen(page) for page in context.pages]):
            return state
        raise EnvironmentFailure(f"{sign.words} within {sign.seconds:g} s: nothing was saved") from error
    return state


def _is_empty(state: StorageState) -> bool:
    return not state.get("cookies") and not any(each.get("localStorage") for each in state.get("origins", ()))


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable by this user only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
    half.replace(path)
