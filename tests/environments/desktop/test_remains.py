"""Nothing of a desktop stays, however it ends: no process, no display, no folder."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from exact.environments.desktop.factory import desktop_factory
from exact.environments.process.worker import Worker
from exact.environments.sandbox.runsc import find_runsc
from exact.errors import EnvironmentFailure
from exact.machine import sweep

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


@pytest.mark.parametrize("end", [raised, killed])
async def test_a_desktop_in_a_sandbox_that_ends_in_the_middle_leaves_nothing(
    end: Callable[[Worker], Awaitable[None]], has_desktop: None, has_runsc: None, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short))
    before, known = {*displays(), *folders(SHARED)}, below(os.getpid())
    with suppress(RuntimeError):
        async with desktop_factory(sandbox=True, screenshots=False) as environments, environments.open(simulation=True) as environment:
            assert isinstance(environment, Worker)
            await environment.reset(desktop_task(CALCULATOR))
            processes = {pid: start for pid, start in below(os.getpid()).items() if pid not in known}
            own = {each for each in folders(SHARED) if each not in before and pid_of(each) == os.getpid()}
            assert processes and own and folders(short)
            await end(environment)
    assert not until_gone(lambda: [pid for pid, start in processes.items() if started(pid) == start])
    assert not own & folders(SHARED) and not folders(short)
    assert not until_gone(lambda: list(opened(processes, displays() - before)))


HOST = """
import asyncio, json, sys
from exact.environments.desktop.factory import desktop_factory
from exact.task import Task

async def main():
    task = Task(id="desktop/left", instruction="", private={"desktop": json.dumps({"applications": [["galculator"]]})})
    async with desktop_factory(sandbox=sys.argv[1] == "sandbox", screenshots=False) as environments:
        async with environments.open(simulation=True) as environment:
            await environment.reset(task)
            print("open", flush=True)
            await asyncio.Event().wait()

asyncio.run(main())
"""
SHARED = Path("/dev/shm")


def below(pid: int) -> dict[int, str]:
    """Return the processes that a process has started, and those that these have, with the time of their start."""
    found, waiting = dict[int, str](), [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
            waiting += (children := list(map(int, (task / "children").read_text().split())))
            found |= {child: started(child) for child in children}
    return found


def started(pid: int) -> str:
    """Return the time of a process's start; empty where it has ended."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if words[0] == "Z" else words[19]


def displays() -> set[Path]:
    return {*Path("/tmp").glob(".X*-lock"), *Path("/tmp/.X11-unix").glob("X*")}


def folders(parent: Path) -> set[Path]:
    """Return exact's folders in a folder for temporary files."""
    return set(parent.glob("exact-*"))


def until_gone(left: Callable[[], list[object]]) -> list[object]:
    """Return what is left after at most ten seconds."""
    end = time.monotonic() + 10
    while (found := left()) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.fixture
def has_runsc() -> None:
    try:
        find_runsc()
    except EnvironmentFailure as error:
        pytest.skip(str(error))


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a temporary folder with a short path: the names of sockets have at most 107 bytes."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("where", ["process", "sandbox"])
def test_a_host_that_is_interrupted_or_killed_leaves_nothing(
    where: str, end: signal.Signals, has_desktop: None, short: Path, request: pytest.FixtureRequest
) -> None:
    if where == "sandbox":
        request.getfixturevalue("has_runsc")
    before = {*displays(), *folders(SHARED)}
    environment = {**os.environ, "TMPDIR": str(short)}
    with subprocess.Popen([sys.executable, "-c", HOST, where], env=environment, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None and host.stdout.readline() == "open\n"
        processes = below(host.pid)
        own = {each for each in folders(SHARED) if each not in before and pid_of(each) == host.pid}
        assert processes and (own or where == "process")
        host.send_signal(end)
        host.wait()
    assert not until_gone(lambda: [pid for pid, start in processes.items() if started(pid) == start])
    assert where == "sandbox" or not until_gone(lambda: list(opened(processes, displays() - before)))
    for folder in (short, SHARED):
        sweep(folder)  # what every process does that opens a desktop
    assert not folders(short) and not own & folders(SHARED)


def pid_of(folder: Path) -> int:
    """Return the process that owns a folder."""
    try:
        return int(json.loads((folder / "owner.json").read_text())["pid"])
    except (OSError, ValueError):
        return 0


def opened(processes: dict[int, str], files: set[Path]) -> list[Path]:
    """Return the locks of displays that one of these processes has made, and their sockets."""
    locks = {each for each in files if each.name.endswith("-lock") and int(each.read_text()) in processes}
    return [each for each in files if each in locks or each.name.removeprefix("X") in {lock.name[2:-5] for lock in locks}]
