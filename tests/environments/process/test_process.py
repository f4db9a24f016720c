"""Nothing survives: neither the guest nor what it started."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from exact.environments.process import guest
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.machine import sweep
from exact.task import Task

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="parent-death signals are Linux's")

FOREIGN = Path(__file__).with_name("foreign.py")
PARENT = """
import asyncio, sys
from exact.environments.process.worker import EnvironmentSpec, WorkerFactory
from exact.task import Task

async def main():
    async with WorkerFactory(EnvironmentSpec(sys.argv[1])).open(simulation=True) as environment:
        await environment.reset(Task(id="count", instruction=""))
        child = await environment.step(environment.actions.action("do", "child"))
        await environment.step(environment.actions.action("do", "litter"))
        print(environment.pid, child.info["pid"], flush=True)
        if sys.argv[2] == "busy":
            await environment.step(environment.actions.action("do", "hang"))
        await asyncio.Event().wait()

asyncio.run(main())
"""


def gone(pid: int, seconds: float = 20.0) -> bool:
    """Return whether a process has ended or is about to."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def names(folder: Path) -> list[str]:
    """Return the names of everything in a folder, at any depth."""
    return [path.name for path in folder.rglob("*")]


@pytest.mark.parametrize("state", ["idle", "busy"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_when_the_parent_is_killed_the_guest_and_its_children_end(state: str, how: signal.Signals, tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, f"{FOREIGN}:Counter", state], stdout=subprocess.PIPE, text=True, env=env)
    assert parent.stdout is not None
    with parent, parent.stdout as said:
        pids = [int(word) for word in said.readline().split()]
        assert len(pids) == 2 and not any(gone(pid, 0.0) for pid in pids)
        assert "left" in names(tmp_path)
        parent.send_signal(how)
    assert all(gone(pid) for pid in pids)
    sweep(tmp_path)
    assert names(tmp_path) == []


STARTER = """
import subprocess, sys
child = subprocess.Popen(sys.argv[1:])
print(child.pid, file=sys.stderr, flush=True)
child.wait()
"""
REQUESTS = [
    {"id": 1, "op": "open", "arguments": {"simulation": False, "arguments": {}}},
    {"id": 2, "op": "step", "arguments": {"action": {"name": "do", "args": ["hang"]}}},
]


@pytest.mark.parametrize("told", ["the end of its stdin", "the death of its parent"])
def test_each_of_two_signs_alone_ends_a_busy_guest(told: str) -> None:
    env = {**os.environ, guest.TOKEN: secrets.token_hex()} if told == "the death of its parent" else None
    command = [sys.executable, "-c", STARTER, sys.executable, guest.__file__, f"{FOREIGN}:Counter"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=env, **pipes) as parent:  # type: ignore[call-overload]
        pid = int(parent.stderr.readline())
        for request in REQUESTS:
            parent.stdin.write(b"".join(guest.pack_frame(request)))
        parent.stdin.flush()
        assert parent.stdout.read(4) == guest.MAGIC and not gone(pid, 0.0)
        if told == "the death of its parent":
            parent.kill()  # and its stdin stays open, for it is ours
            assert gone(pid)
        else:
            parent.stdin.close()
            assert gone(pid)


@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_a_child_that_left_the_guests_group_ends_with_the_guest(how: str) -> None:
    async with WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter")).open(simulation=True) as environment:
        await environment.reset(Task(id="count", instruction=""))
        child = int((await environment.step(environment.actions.action("do", "child"))).info["pid"])
        assert environment.pid is not None and os.getsid(child) != environment.pid
        if how == "killed":
            os.kill(environment.pid, signal.SIGKILL)
            assert await asyncio.to_thread(gone, child)
    assert gone(child)


LATE = """
import os, time

def setsid(setsid=os.setsid):
    time.sleep(1)
    setsid()

os.setsid = setsid
"""


async def test_a_supervisor_that_begins_late_ends_what_left_the_guests_group_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(LATE)
    async with WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter", env={"PYTHONPATH": str(tmp_path)})).open(simulation=True) as environment:
        await environment.reset(Task(id="count", instruction=""))
        child = int((await environment.step(environment.actions.action("do", "child"))).info["pid"])
    assert gone(child)


def test_a_process_that_is_executing_another_program_is_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(300):  # in one of ten or more the environment is not to be seen yet
        child = subprocess.Popen(["sleep", "600"], env={guest.TOKEN: "mine", "PATH": os.environ["PATH"]})
        monkeypatch.setattr(os, "listdir", lambda path, seen=[str(child.pid)]: seen)
        try:
            while guest._kill_marked("mine"):
                pass
            assert gone(child.pid, 0.5)
        finally:
            child.kill()
            child.wait()


def test_processes_without_environment_variables_are_neither_ended_nor_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    child = subprocess.Popen(["sleep", "600"], env={})
    monkeypatch.setattr(os, "listdir", lambda path: [str(child.pid)])
    try:
        while guest._kill_marked("mine"):
            pass
        assert child.poll() is None
    finally:
        child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert guest._kill_marked("mine") == 0  # nor is what has ended and was not reaped
    child.wait()


@pytest.mark.parametrize("how", ["closed", "killed"])
async def test_temporary_files_of_a_guest_are_removed_with_it(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    async with WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter")).open(simulation=True) as environment:
        await environment.reset(Task(id="count", instruction=""))
        await environment.step(environment.actions.action("do", "litter"))
        assert "left" in names(tmp_path)
        if how == "killed":
            assert environment.pid is not None
            os.kill(environment.pid, signal.SIGKILL)
    assert names(tmp_path) == []


@pytest.mark.parametrize("turns", [1, 2, 3, 5, 8, 50])
async def test_a_cancelled_opening_leaves_no_guest(turns: int) -> None:
    before = children()  # the browser that all tests share may be among them
    opening = asyncio.ensure_future(WorkerFactory(EnvironmentSpec(f"{FOREIGN}:Counter")).open(simulation=True).__aenter__())
    for _ in range(turns):
        await asyncio.sleep(0)
    opening.cancel()
    assert isinstance((await asyncio.gather(opening, return_exceptions=True))[0], asyncio.CancelledError)
    assert children() == before


def children() -> set[int]:
    """Return the live processes that this one started, including dead ones that were not waited for."""
    found = set()
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and (folder / "stat").read_text().rpartition(")")[2].split()[1] == str(os.getpid()):
                found.add(int(folder.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found
