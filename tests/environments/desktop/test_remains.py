"""Nothing of a desktop stays, however it ends: no process, no display, no folder."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from exact.environments.desktop import desktop_factory
from exact.environments.process.worker import Worker

from .applications import CALCULATOR, desktop_task, running


def present(paths: list[Path]) -> list[Path]:
    return [path for path in paths if path.exists()]


def variables(pid: int) -> dict[str, str]:
    """Return the environment variables of a process."""
    return dict(each.decode().partition("=")[::2] for each in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"))


async def raised(_: Worker) -> None:
    raise RuntimeError("the user's own code")


async def killed(environment: Worker) -> None:
    os.kill(environment.pid or 0, signal.SIGKILL)


@pytest.mark.parametrize("end", [raised, killed])
async def test_a_desktop_that_ends_in_the_middle_leaves_nothing(end: Callable[[Worker], Awaitable[None]], has_desktop: None) -> None:
    left: list[Path] = []
    pids: list[int] = []
    try:
        async with desktop_factory(screenshots=False) as environments, environments.open(simulation=True) as environment:
            assert isinstance(environment, Worker)
            await environment.reset(desktop_task(CALCULATOR))
            pids = [running(environment.pid, name) for name in ("Xvfb", "openbox", "galculator")]
            told = variables(pids[2])
            number = told["DISPLAY"].removeprefix(":")
            left = [Path(f"/tmp/.X11-unix/X{number}"), Path(f"/tmp/.X{number}-lock"), Path(told["HOME"]).parent]
            assert {left[0], left[2]} <= set(present(left))
            await end(environment)
    except RuntimeError:
        pass
    assert not present([Path(f"/proc/{pid}/exe") for pid in pids])
    for _ in range(100):
        if not present(left):
            break
        await asyncio.sleep(0.05)
    assert not present(left)
