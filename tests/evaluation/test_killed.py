"""`kill -9` in the middle of a benchmark."""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from exact.evaluation.folder import BenchFolder

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "tests.evaluation.killed")


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, str(folder)], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})


def kill_after(process: subprocess.Popen[bytes], folder: Path, lines: int) -> bool:
    """Kill once the journals hold that many lines; False if it ended before."""
    while process.poll() is None:
        if sum(path.read_bytes().count(b"\n") for path in folder.glob("agents/*/tasks/*/journal.jsonl")) >= lines:
            process.kill()
            process.wait()
            return True
        time.sleep(0.002)
    return False


def timeless(folder: Path) -> list[dict[str, Any]]:
    """Lines of results.jsonl but for how long they took, and for how often a search had to walk to a state: its worlds died with it."""
    lines = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    return [{**line, "seconds": 0} | ({"transitions": 0, "restores": 0} if line["agent"] != "react" else {}) for line in lines]


def test_a_benchmark_killed_again_and_again_ends_with_the_results_of_one_that_was_not(tmp_path: Path) -> None:
    assert start(tmp_path / "whole").wait(timeout=60) == 0
    folder, rng, lines, kills = tmp_path / "killed", random.Random(5), 0, 0
    for _ in range(3):
        lines += rng.randint(15, 60)
        kills += kill_after(start(folder), folder, lines)
        if (folder / "results.jsonl").exists():
            assert timeless(folder) == timeless(tmp_path / "whole")[: len(timeless(folder))], "always a beginning of what it will be"
    assert kills >= 2 and start(folder).wait(timeout=60) == 0
    assert timeless(folder) == timeless(tmp_path / "whole")
    assert [each.status for each in BenchFolder(folder).attempts()] == ["scored"] * len(BenchFolder(folder).attempts())
