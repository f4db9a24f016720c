"""The log-ins of a person's browser profile, read from a copy of it.

The profile of a launched browser, which Playwright creates among the temporary files and does not always remove.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exact.environments.browser.launch.context import no_sandbox
from exact.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Playwright, Route

    from exact.environments.browser.page.cdp import CdpConnection


_COPIED = ("Cookies", "Cookies-journal", "Network", "Local Storage", "Preferences")
"""Parts of a profile that are copied: cookies and local storage. Locks, caches, passwords and history are not."""
_KEYRING = ["--password-store=basic", "--use-mock-keychain"]
"""Arguments of Playwright's that keep the browser from the keyring, with whose key a person's cookies are encrypted."""


class UserProfile:
    """Reads cookies and storage of a profile in a copy, with a browser that reaches no server. The profile itself is only read."""

    def __init__(self, playwright: Playwright, executable: Path | str, profile: str, copy: Path, nowhere: str) -> None:
        """Check the profile.

        Args:
            playwright: Playwright's driver.
            executable: The browser. It should be that of the profile.
            profile: A user data folder, whose profile `Default` is taken, or the folder of a profile in one.
            copy: Folder for the copies, which exist only while they are read.
            nowhere: Address of a proxy that connects to nothing.

        Raises UsageError if the profile is missing.
        """
        folder = Path(profile).expanduser()
        whole = (folder / "Local State").is_file() or (folder / "Default").is_dir()
        self._data, self._name = (folder, "Default") if whole else (folder.parent, folder.name)
        if not any((self._data / self._name / each).exists() for each in ("Preferences", "Cookies", "Network")):
            raise UsageError(f"browser.profile: no profile of Chromium at {profile}: give the folder that chrome://version names")
        self._playwright, self._executable, self._copy, self._nowhere = playwright, executable, copy, nowhere
        self._found: dict[tuple[str, ...], dict[str, Any]] = {}
        self._turn = asyncio.Lock()

    async def __call__(self, origins: Iterable[str]) -> dict[str, Any]:
        """Return cookies and local storage for some origins, as `storage_state` does. Raises EnvironmentFailure."""
        key = tuple(sorted(set(origins)))
        async with self._turn:
            if key not in self._found:
                try:
                    await asyncio.to_thread(self._copy_profile)
                    self._found[key] = await self._read(key)
                finally:
                    await asyncio.to_thread(shutil.rmtree, self._copy, ignore_errors=True)
        return self._found[key]

    def _copy_profile(self) -> None:
        target = self._copy / self._name
        try:
            target.mkdir(parents=True)
            if (self._data / "Local State").is_file():  # headless browsers write none
                shutil.copy2(self._data / "Local State", self._copy)
            for name in _COPIED:
                source = self._data / self._name / name
                if source.is_dir():
                    shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("LOCK", "lock"))
                elif source.is_file():
                    shutil.copy2(source, target)
        except OSError as error:
            raise EnvironmentFailure(f"browser.profile {self._data / self._name} cannot be copied: {error.strerror or error}") from error

    async def _read(self, origins: tuple[str, ...]) -> dict[str, Any]:
        from playwright.async_api import Error

        async def blank(route: Route) -> None:
            await route.fulfill(status=200, content_type="text/html", body="")

        walled = (f"--proxy-server={self._nowhere}", "--proxy-bypass-list=<-loopback>")
        arguments = [f"--profile-directory={self._name}", *walled, *no_sandbox()]
        try:
            context = await self._playwright.chromium.launch_persistent_context(
                self._copy, executable_path=self._executable, headless=True, args=arguments, ignore_default_args=_KEYRING,
                service_workers="block", handle_sigint=False,
            )  # fmt: skip
            try:
                await context.route("**/*", blank)
                page, storage = await context.new_page(), []
                for each in origins:
                    await page.goto(f"{each}/")
                    entries = await page.evaluate("Object.entries(localStorage)")
                    storage.append({"origin": each, "localStorage": [{"name": name, "value": value} for name, value in entries]})
                return {"cookies": await context.cookies(list(origins)), "origins": storage}
            finally:
                await context.close()
        except Error as error:
            raise EnvironmentFailure(f"the copy of browser.profile does not open: {str(error).strip().splitlines()[0]}") from error


_ARGUMENT = re.compile(r"--user-data-dir=(.*?playwright_chromiumdev_profile-\w+)")
_REMOVAL_TIMEOUT = 2.0
"""Seconds within which remaining processes of a killed browser may still write into its profile."""


async def find_profile(cdp: CDPSession | CdpConnection) -> Path | None:
    """Return the folder of the profile; None if it is not Playwright's. `cdp`: the browser's session. Raises Playwright's Error."""
    found = _ARGUMENT.search((await cdp.send("SystemInfo.getInfo"))["commandLine"])
    return Path(found[1]) if found else None


async def remove_profile(profile: Path | None) -> None:
    """Remove a profile that still exists because the browser or Playwright's driver was killed."""
    if profile:
        await asyncio.to_thread(_remove, profile)


def _remove(profile: Path) -> None:
    deadline = time.monotonic() + _REMOVAL_TIMEOUT
    while profile.exists() and time.monotonic() < deadline:
        shutil.rmtree(profile, ignore_errors=True)
        time.sleep(0.02)
