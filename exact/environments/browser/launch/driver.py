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
from exact.plugins import import_meanwhile
from exact.version import FIX, set_up, with_apt

if TYPE_CHECKING:
    from playwright.async_api import Playwright


_TURNS = 3
"""Turns of the event loop in which Playwright starts the process."""
_GONE = 1.0
"""Most seconds until Playwright notices that its driver has ended."""


def way_out() -> str:
    """Return the way to a driver that starts."""
    return f"{set_up('', FIX)}, or {with_apt('libatomic1', otherwise='install Playwright again')}"


@asynccontextmanager
async def start_driver() -> AsyncIterator[Playwright]:
    """Run a driver while the block runs. Raises EnvironmentFailure if it does not start.

    Whether it can start is asked while it starts.
    """
    from playwright.async_api import async_playwright

    driver = async_playwright()
    starting = asyncio.ensure_future(driver.start())
    for _ in range(_TURNS):
        await asyncio.sleep(0)
    importing = asyncio.ensure_future(import_meanwhile())
    try:
        if reason := await asyncio.to_thread(driver_fault):
            await asyncio.wait({starting}, timeout=_GONE)
            raise EnvironmentFailure(f"Playwright's driver does not start: {reason}: {way_out()}")
        await importing
        yield await starting
    finally:
        importing.cancel()
        if not starting.cancel() and not starting.cancelled():
            starting.exception()  # which is the same fault
        await driver.__aexit__()


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
