"""A launched browser's profile: Playwright makes it, in the folder for temporary files, and does not always remove it."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

_MADE = re.compile(r"--user-data-dir=(.*?playwright_chromiumdev_profile-\w+)")
_LEAVING = 2.0
"""Seconds in which what else belonged to a browser that was killed may still write into its profile."""


async def find_profile(cdp: CDPSession) -> Path | None:
    """Where it is. `cdp`: the browser's own session. Raises Playwright's Error."""
    found = _MADE.search((await cdp.send("SystemInfo.getInfo"))["commandLine"])
    return Path(found[1]) if found else None


async def remove_profile(profile: Path | None) -> None:
    """Remove it where it is still there: the browser was killed, or Playwright's driver."""
    if profile:
        await asyncio.to_thread(_remove, profile)


def _remove(profile: Path) -> None:
    deadline = time.monotonic() + _LEAVING
    while profile.exists() and time.monotonic() < deadline:
        shutil.rmtree(profile, ignore_errors=True)
        time.sleep(0.02)
