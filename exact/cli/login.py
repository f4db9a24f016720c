"""`exact login`: log in to a site by hand, in a window, and save the session."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import click

from exact.errors import EnvironmentFailure, UsageError
from exact.safety import is_web

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext


@click.command()
@click.argument("site", metavar="SITE")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    help="File to save to. Default: the one that the site file names, else in ~/.config/exact/logins.",
)
@click.option("--until", metavar="REGEX", help="Save as soon as the address matches. Default: save when you press Enter.")
@click.option("--seconds", default=600.0, show_default=True, help="Seconds to wait for a matching address.")
@click.option("--headless", is_flag=True, help="Show no window, for sites that log in without input.")
def login(site: str, out: Path | None, until: str | None, seconds: float, headless: bool) -> int:
    """Log in to SITE by hand and save its cookies and storage.

    SITE is an address or a site file. Requests are neither restricted nor recorded, so that single sign-on works. The file is readable by
    you alone (mode 0600) and must lie outside of any run. Refer to it in the site file: browser: {login: {state: FILE}}.
    """
    pattern = _compiled(until)
    url, given = _target(site)
    path = (out or given or _default(url)).expanduser().absolute()
    _refuse_run(path)
    if not pattern and not sys.stdin.isatty():
        raise UsageError("no terminal to press Enter in: give the address after the log-in with --until")
    asyncio.run(_login(url, path, pattern, seconds, headless))
    click.echo(f"saved to {path}\nrefer to it in the site file: browser: {{login: {{state: {path}}}}}")
    return 0


def _compiled(until: str | None) -> re.Pattern[str] | None:
    try:
        return re.compile(until) if until else None
    except re.error as error:
        raise UsageError(f"invalid regular expression --until {until!r}: {error}") from error


def _target(site: str) -> tuple[str, Path | None]:
    """Return the address of a site, and the session file that its site file names, if any."""
    if not site.endswith((".yaml", ".yml")):
        url = site if "://" in site else f"https://{site}"
        if not is_web(url):
            raise UsageError(f"invalid address {site!r}: write https://host")
        return url, None
    from exact.benchmarks.own import read_site

    site_file = read_site(Path(site))
    if not is_web(site_file.url):
        raise UsageError(f"invalid url {site_file.url!r} in {site}: write https://host")
    state = (site_file.browser.get("login") or {}).get("state", "")
    return site_file.url, Path(site).absolute().parent / Path(state).expanduser() if state else None


def _default(url: str) -> Path:
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "exact" / "logins" / f"{urlsplit(url).netloc.replace(':', '-')}.json"


def _refuse_run(path: Path) -> None:
    """Raise UsageError where a path is in a run folder, because run folders are shared."""
    for folder in path.parents:
        if (folder / "run.json").exists():
            raise UsageError(f"{path} is in the run {folder}: save log-ins elsewhere")


async def _login(url: str, path: Path, until: re.Pattern[str] | None, seconds: float, headless: bool) -> None:
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
                executable_path=find_browser(not headless), headless=headless, args=chromium_arguments({})
            )
            context = await browser.new_context(no_viewport=not headless)
            await (await context.new_page()).goto(url)
            await _wait(browser, context, until, seconds)
            state = await context.storage_state()
            await browser.close()
        except Error as error:
            raise EnvironmentFailure(f"the browser was closed, or could not open {url}: {str(error).splitlines()[0]}") from error
    write_private(path, json.dumps(state))


async def _wait(browser: Browser, context: BrowserContext, until: re.Pattern[str] | None, seconds: float) -> None:
    if not until:
        click.echo("Log in in the window, then press Enter here.")
        await asyncio.to_thread(sys.stdin.readline)
        return
    try:
        async with asyncio.timeout(seconds):
            while not any(until.search(page.url) for page in context.pages):
                if not browser.is_connected() or not context.pages:
                    raise EnvironmentFailure("the window was closed before the log-in: nothing was saved")
                await asyncio.sleep(0.1)
    except TimeoutError as error:
        raise EnvironmentFailure(f"no address matched {until.pattern!r} within {seconds:g} s: nothing was saved") from error


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable by this user only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(half, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
        file.write(text)
    half.replace(path)
