"""`kill -9` in the middle of a benchmark."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from exact.evaluation.folder import BenchFolder
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal

ROOT = Path(__file__).parents[2]
WALK = 13
"""Steps, at most, from the start to where a search of depth 8 stood, and to what it had committed of 4 actions; and the one under way."""
COMMAND = (sys.executable, "-m", "tests.evaluation.killed")


def start(folder: Path, fidelity: str = "full") -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, str(folder), fidelity], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def kill_after(process: subprocess.Popen[bytes], folder: Path, lines: int) -> bool:
    """Kill the process once the journals have that many lines. Return False where it ended before."""
    while process.poll() is None:
        if sum(path.read_bytes().count(b"\n") for path in folder.glob("agents/*/tasks/*/journal.jsonl")) >= lines:
            process.kill()
            process.wait()
            return True
        time.sleep(0.002)
    return False


def timeless(folder: Path) -> list[dict[str, Any]]:
    """Return the lines of results.jsonl without durations and restores, which depend on the environments that died with the process."""
    return [{**line, "seconds": 0} | ({"transitions": 0, "restores": 0} if line["agent"] != "react" else {}) for line in lines(folder)]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]


def resumed(folder: BenchFolder, line: dict[str, Any]) -> int:
    """Return how often an attempt was resumed."""
    task = next(task for task in folder.plan.tasks if task.id == line["task"])
    events = read_journal(folder.agent(line["agent"])[0].task_folder(task) / "journal.jsonl")
    return sum(isinstance(event, ev.Resumed) for event in events)


@pytest.mark.parametrize("fidelity", ["full", "replay"])
def test_a_benchmark_killed_again_and_again_ends_with_the_results_of_one_that_was_not(tmp_path: Path, fidelity: str) -> None:
    """Six processes run one after the other."""
    assert start(tmp_path / "whole", fidelity).wait(timeout=60) == 0
    folder, rng, reached, kills = tmp_path / "killed", random.Random(5), 0, 0
    for _ in range(4):
        reached += rng.randint(15, 60)
        kills += kill_after(start(folder, fidelity), folder, reached)
        if (folder / "results.jsonl").exists():
            assert timeless(folder) == timeless(tmp_path / "whole")[: len(timeless(folder))], "always a beginning of what it will be"
    assert kills >= 3 and start(folder, fidelity).wait(timeout=60) == 0
    assert timeless(folder) == timeless(tmp_path / "whole")
    assert [each.status for each in BenchFolder(folder).attempts()] == ["scored"] * len(BenchFolder(folder).attempts())
    asked = [line for line in lines(folder) if line["agent"] == "asking"]
    assert len(asked) == 4 and all(line["calls"] > 9 and line["tokens"] > 999 and line["cost"] > 0 for line in asked), "0 is 0 anyhow"
    assert sum(resumed(BenchFolder(folder), line) for line in asked) > 1, "some were cut short"
    # Environments of fidelity `environment` keep states while one is free: what is walked hangs on timing there, also where nobody kills.
    if fidelity == "replay":
        for one, other in zip(lines(folder), lines(tmp_path / "whole"), strict=True):
            again, more = resumed(BenchFolder(folder), one), one["transitions"] - other["transitions"]
            assert abs(more) <= again * WALK, "where nothing died nothing is walked again; where it did, what leads back"
