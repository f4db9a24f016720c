"""`kill -9` in the middle of real searches, and what a user finds afterwards."""

from __future__ import annotations

import random
import signal
from pathlib import Path

import pytest

from exact.runs.store import RunFolder
from tests.e2e.kills import commits, faults, gone, kill_after, start

TASKS = ("miniwob/click-tab-2?seed=1", "miniwob/click-collapsible?seed=1")
CLEAR = ("miniwob/click-checkboxes?seed=1", "miniwob/click-option?seed=1")
"""Where what is committed does not hang on the order in which several workers bring their results."""
CONFIG = Path(__file__).parents[2] / "shells" / "configs" / "rmcts_builtin.yaml"


def test_a_run_killed_again_and_again_ends_whole(tmp_path: Path) -> None:
    folder, rng, lines, kills = tmp_path / "run", random.Random(7), 0, 0
    for _ in range(4):
        lines += rng.randint(2, 12)
        kills += kill_after(start(folder, TASKS, CONFIG), folder, lines, 60)
        assert gone(folder) == [], "a killed run left processes"
    last = start(folder, TASKS, CONFIG)
    output, _ = last.communicate(timeout=120)
    assert last.returncode == 0, output.decode()
    assert kills >= 3
    assert faults(folder) == []
    assert gone(folder) == []


@pytest.mark.parametrize("enact", ["enact", "promote"])
def test_a_search_of_four_workers_that_is_killed_goes_on_to_the_same_actions(enact: str, tmp_path: Path) -> None:
    settings = ("search.workers=4", f"search.enact={enact}", "search.iterations=16", "limits.transitions=150")
    whole, folder, rng = tmp_path / "whole", tmp_path / "run", random.Random(11)
    start(whole, CLEAR, CONFIG, *settings).communicate(timeout=120)
    killed = kill_after(start(folder, CLEAR, CONFIG, *settings), folder, rng.randint(15, 40), 60)
    assert gone(folder) == [], "a killed run left processes"
    last = start(folder, CLEAR, CONFIG, *settings)
    output, _ = last.communicate(timeout=120)
    assert killed and last.returncode == 0, output.decode()
    assert faults(folder) == [] and commits(folder) == commits(whole)


def test_ctrl_c_ends_cleanly_names_the_way_on_and_exits_130(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, TASKS, CONFIG)
    while process.poll() is None and not list(folder.glob("tasks/*/journal.jsonl")):
        pass
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output.decode()
    assert f"exact resume {folder}" in output.decode()
    assert "Traceback" not in output.decode()
    assert gone(folder) == []
    assert len(RunFolder.open(folder).manifest.tasks) == 2
