"""Factories of desktops: each desktop in a separate process, or in a sandbox that can be forked as a whole.

async with desktop_factory() as environments, environments.open(simulation=True) as desktop:
    observation = await desktop.reset(task)
"""

from __future__ import annotations

import importlib.util
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from exact.environments.base import EnvironmentFactory
from exact.environments.desktop.account import account
from exact.environments.desktop.grammar import SPACES, Space
from exact.environments.desktop.session import missing
from exact.environments.process.worker import EnvironmentSpec, GuestTimeouts, WorkerFactory
from exact.environments.sandbox.sandboxes import LIMIT
from exact.errors import UsageError
from exact.version import FIX, PACKAGE, set_up

_PACKAGES = {"mss": "mss", "jeepney": "jeepney", "python-xlib": "Xlib"}
TIMEOUTS = GuestTimeouts(open=240.0, reset=240.0, step=90.0)


def absent() -> str:
    """Return the requirements of a desktop that this machine lacks, with the way to get them; empty if nothing is missing."""
    packages = [name for name, module in _PACKAGES.items() if not importlib.util.find_spec(module)]
    if packages:
        return f"{', '.join(packages)} not installed: pip install 'exact-agent[desktop]'"
    lacking = missing()
    return f"{', '.join(lacking)} not installed: apt-get install {' '.join(lacking)}, or {set_up('--desktop', FIX)}" if lacking else ""


@asynccontextmanager
async def desktop_factory(
    *,
    sandbox: bool = False,
    width: int = 1280,
    height: int = 800,
    screenshots: bool = True,
    actions: Space = "elements",
    vm_port: int | None = None,
    timeouts: GuestTimeouts = TIMEOUTS,
    limit: int = LIMIT,
    log: Path | None = None,
) -> AsyncIterator[EnvironmentFactory]:
    """Provide a factory of desktops while the block runs. A task's private part describes its content: see `desktop.setup`.

    sandbox: run each in gVisor as the user of `account`, so that it can be forked as a whole; else states are reached by reset and replay.
    width, height: size of the screen in pixels. vm_port: port of its loopback at which each serves OSWorld's interface of a machine; None
    for none. limit: bytes of retained snapshots. log: file to which the programs' output is appended. Raises UsageError if packages are
    missing, and EnvironmentFailure without a usable runsc.
    """
    if lack := absent():
        raise UsageError(f"no desktop here: {lack}")
    spec = EnvironmentSpec(
        "exact.environments.desktop.environment:Desktop",
        {"width": width, "height": height, "screenshots": screenshots, "actions": actions, "vm_port": vm_port, "user": sandbox},
        paths=((package := PACKAGE).parent,),
        shown=(package,),
    )
    if not sandbox:
        yield WorkerFactory(spec, timeouts=timeouts, actions=SPACES[actions], log=log)
        return
    from exact.environments.sandbox.factory import sandboxed_factory

    with account() as inside:
        async with sandboxed_factory(spec, inside=inside, timeouts=timeouts, actions=SPACES[actions], limit=limit, log=log) as environments:
            yield environments
