"""The profile of a launched browser, which Playwright creates among the temporary files and does not always remove."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

    from exact.environments.browser.page.connection import CdpConnection

_ARGUMENT = re.compile(r"--user-data-dir=(.*?playwright_chromiumdev_profile-\w+)")
_REMOVAL_TIMEOUT = 2.0
"""Seconds within which remaining processes of a killed browser may still write into its profile."""


async def find_profile(cdp: CDPSession | CdpConnection) -> Path | None:
    """Return the folder of the profile; None where it is not Playwright's. `cdp`: the browser's own session. Raises Playwright's Error."""
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
