"""Kill `exact run` at some moment, resume it, and look at what the journals say. Used by a test and by bench/kills.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.store import RunFolder
from tests.processes import left

EXACT = (sys.executable, "-c", "import sys; from exact.cli.main import main; sys.exit(main())")
MARK = "LC_EXACT_TEST_RUN"
SETTINGS = ("search.iterations=6", "search.k=4", "limits.transitions=40", "browser.screenshots=false")


def start(folder: Path, tasks: tuple[str, ...], config: Path, *more: str) -> subprocess.Popen[bytes]:
    """`exact run`, with more settings, or `exact resume` where the folder holds a run already."""
    settings = [part for setting in (*SETTINGS, *more) for part in ("--set", setting)]
    command = ("run", *tasks, "--config", str(config), "--out", str(folder), *settings)
    if (folder / "run.json").exists():
        command = ("resume", str(folder))
    return subprocess.Popen(
        [*EXACT, *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, MARK: str(folder)},
        preexec_fn=_heed_ctrl_c,
    )


def _heed_ctrl_c() -> None:
    """Restore the default of SIGINT, which a shell's background job and its children ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kill_after(process: subprocess.Popen[bytes], folder: Path, lines: int, seconds: float) -> bool:
    """`kill -9` once the journals hold that many lines; False if the process ended before."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if journalled(folder) >= lines:
            process.kill()
            process.communicate()
            return True
        time.sleep(0.002)
    process.kill()
    process.communicate()
    return False


def journalled(folder: Path) -> int:
    """Return the number of lines in the journals of a run."""
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("tasks/*/journal.jsonl"))


def faults(folder: Path) -> list[str]:
    """Return the faults of a run that should be finished: lost tasks, repeated facts."""
    run = RunFolder.open(folder)
    found = [f"{task.id} has no result" for task in run.manifest.tasks if task.id not in {line.task for line in run.results()}]
    found += [f"{line.task}: {line.status}: {line.reason}" for line in run.results() if line.status != "scored"]
    for path in folder.glob("tasks/*/journal.jsonl"):
        events = list(read_journal(path))
        facts = Counter[object]()
        facts.update(("step", event.node, event.edge) for event in events if isinstance(event, ev.Acted))
        facts.update(("rolled", event.node, event.policy, event.draw, event.index) for event in events if isinstance(event, ev.RolledStep))
        facts.update(("call", event.key) for event in events if isinstance(event, ev.Called))
        facts.update(("commit", event.step) for event in events if isinstance(event, ev.Committed))
        facts.update("score" for event in events if isinstance(event, ev.Scored))
        lessons = [event.reflection for event in events if isinstance(event, ev.Reflected)]
        facts.update(("lesson", each.kind, each.node, each.action) for each in lessons)
        found += [f"{path.parent.name}: {fact} {n} times" for fact, n in facts.items() if n > 1]
    return found


def commits(folder: Path) -> dict[str, list[str]]:
    """Return the committed actions of each task, by the folder's name."""
    return {
        path.parent.name: [event.action for event in read_journal(path) if isinstance(event, ev.Committed)]
        for path in folder.glob("tasks/*/journal.jsonl")
    }


def gone(folder: Path, seconds: float = 15.0) -> list[str]:
    """Return the command lines of the run's processes that are still alive after the time limit."""
    return left(f"{MARK}={folder}", seconds)
