"""Playwright's driver: the Node.js process that controls browsers for this process."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from exact.errors import EnvironmentFailure
from exact.version import FIX, set_up, with_apt

if TYPE_CHECKING:
    from playwright.async_api import Playwright


def way_out() -> str:
    """Return the way to a driver that starts."""
    return f"{set_up('', FIX)}, or {with_apt('libatomic1', otherwise='install Playwright again')}"


@asynccontextmanager
async def start_driver() -> AsyncIterator[Playwright]:
    """Run a driver while the block runs. Raises EnvironmentFailure if it does not start."""
    from playwright.async_api import async_playwright

    if reason := await asyncio.to_thread(driver_fault):
        raise EnvironmentFailure(f"Playwright's driver does not start: {reason}: {way_out()}")
    async with async_playwright() as playwright:
        yield playwright


def driver_fault() -> str:
    """Return the reason why the driver does not start on this machine; empty if it starts."""
    import playwright

    return _version_fault(os.environ.get("PLAYWRIGHT_NODEJS_PATH") or str(Path(playwright.__file__).parent / "driver" / "node"))


@functools.cache
def _version_fault(node: str) -> str:
    try:
        done = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    lines = done.stderr.strip().splitlines() or [f"{node} ended with {done.returncode}"]
    return lines[-1] if done.returncode else ""
