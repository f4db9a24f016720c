"""Options and permissions of browser contexts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exact.config import BrowserConfig, CertificateConfig
from exact.environments.sites.accounts import value_of
from exact.errors import UsageError
from exact.version import __version__

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext


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
            "latitude": config.geolocation.latitude, "longitude": config.geolocation.longitude, "accuracy": config.geolocation.accuracy,
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
