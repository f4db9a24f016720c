"""Options and permissions of browser contexts.

Emulation of devices by Playwright's names.

The browser configuration of a task: the run's, with the task's own keys.

The log-ins of a person's browser profile, read from a copy of it.

The profile of a launched browser, which Playwright creates among the temporary files and does not always remove.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import BrowserConfig, CertificateConfig
from exact.config.aliases import current
from exact.environments.sites.accounts import value_of
from exact.errors import EnvironmentFailure, UsageError, unknown
from exact.task import Task
from exact.version import __version__

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, CDPSession, Playwright, Route

    from exact.environments.browser.page.cdp import CdpConnection


ACCURACY = 10.0
"""Accuracy of the reported position, in metres."""


def user_agent(config: BrowserConfig) -> str:
    """Return the user agent that a configuration asks for; empty for the browser's own."""
    if config.user_agent or not config.contact:
        return config.user_agent
    return f"Mozilla/5.0 (compatible; exact-agent/{__version__}; +{config.contact})"


def no_sandbox() -> list[str]:
    """Return Chromium's argument without which it does not start as root; none for other users."""
    return ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def context_options(config: BrowserConfig, origins: Iterable[str]) -> dict[str, Any]:
    """Return the options for Playwright's `new_context`. `origins`: those that get the client certificate. Raises UsageError."""
    found: dict[str, Any] = {
        "viewport": {"width": config.width, "height": config.height},
        "locale": config.locale,
        "timezone_id": config.timezone,
        "reduced_motion": "reduce",
        "service_workers": "block",
        "accept_downloads": False,
    }
    if config.scale != 1.0:
        found["device_scale_factor"] = config.scale
    if agent := user_agent(config):
        found["user_agent"] = agent
    if config.geolocation:
        found["geolocation"] = {
            "latitude": config.geolocation.latitude, "longitude": config.geolocation.longitude, "accuracy": ACCURACY,
        }  # fmt: skip
    if config.login.certificate:
        shown = _certificate(config.login.certificate)
        found["client_certificates"] = [{"origin": each, **shown} for each in origins if each.startswith("https:")]
    return found


async def grant_permissions(context: BrowserContext, permissions: Sequence[str], origins: Iterable[str]) -> None:
    """Grant permissions to the task's origins. Raises UsageError for an unknown permission."""
    from playwright.async_api import Error

    for each in origins:
        try:
            await context.grant_permissions(list(permissions), origin=each)
        except Error as error:
            raise UsageError(f"browser.permissions {', '.join(permissions)}: {str(error).splitlines()[0]}") from error


def _certificate(given: CertificateConfig) -> dict[str, str]:
    files = {"certPath": given.certificate, "keyPath": given.key, "pfxPath": given.pfx}
    found = {name: path for name, path in files.items() if path}
    if set(found) not in ({"certPath", "keyPath"}, {"pfxPath"}):
        raise UsageError("browser.login.certificate: give certificate and key, or pfx")
    for path in found.values():
        if not Path(path).is_file():
            raise UsageError(f"browser.login.certificate: {path} does not exist")
    if given.passphrase:
        found["passphrase"] = value_of("browser.login.certificate.passphrase", given.passphrase, os.environ)
    return found


Devices = Mapping[str, Mapping[str, Any]]
"""Descriptions of devices by name, as Playwright has them."""


def with_device(config: BrowserConfig, devices: Devices) -> BrowserConfig:
    """Return a configuration with the viewport, scale and user agent of its device, if it names one. A user agent that is given stays.

    Raises UsageError for an unknown name, with the nearest one.
    """
    if not config.device:
        return config
    found = _device(config.device, devices)
    size, agent = found["viewport"], config.user_agent or str(found["user_agent"])
    return msgspec.structs.replace(
        config, width=size["width"], height=size["height"], scale=float(found["device_scale_factor"]), user_agent=agent
    )


def device_options(config: BrowserConfig, devices: Devices) -> dict[str, Any]:
    """Return the context options that a configuration does not hold: whether the device is a phone with a touch screen."""
    if not config.device:
        return {}
    found = _device(config.device, devices)
    return {"is_mobile": found["is_mobile"], "has_touch": found["has_touch"]}


def _device(name: str, devices: Devices) -> Mapping[str, Any]:
    if not devices:
        raise UsageError("browser.device needs a browser outside of a sandbox: set browser.sandbox to never")
    if name not in devices:
        raise unknown("browser.device", name, devices)
    return devices[name]


KEYS = (
    *("width", "height", "scale", "locale", "timezone", "user_agent", "geolocation", "permissions", "mask", "login", "html", "dialogs"),
    *("download_bytes", "settle_seconds", "answer_seconds", "masks", "clock", "proxy", "authorities", "recording", "screenshots", "device"),
)
"""Keys of BrowserConfig that a task may set."""
_LAUNCH_KEYS = ("proxy", "authorities", "recording")
"""Keys that apply to a whole browser, so that environments with different values need different ones."""


def browser_config_of(config: BrowserConfig, task: Task) -> BrowserConfig:
    """Return the configuration with the keys of the task's metadata `browser`, a JSON object. Raises UsageError for an invalid one."""
    text = task.metadata.get("browser")
    if text is None:
        return config
    try:
        given = json.loads(str(text))
    except ValueError as error:
        raise UsageError(f"task {task.id}: `browser` is no JSON object: {error}") from error
    if not isinstance(given, dict):
        raise UsageError(f"task {task.id}: `browser` is no JSON object: write {{locale: de-DE}}")
    given = current(given, "browser", announce=False)
    for key in given:
        if key not in KEYS:
            raise unknown("key of a task's browser", key, KEYS)
    try:
        return msgspec.convert({**msgspec.to_builtins(config), **given}, BrowserConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"task {task.id}: invalid `browser`: {error}") from error


def same_launch(one: BrowserConfig, other: BrowserConfig) -> bool:
    """Return whether one browser suits both configurations."""
    return all(getattr(one, key) == getattr(other, key) for key in _LAUNCH_KEYS)


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
