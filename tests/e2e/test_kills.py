"""`kill -9` in the middle of real searches, and what a user finds afterwards."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import pytest

from exact.runs.journal.store import RunFolder
from tests.e2e.kills import commits, faults, gone, journalled, kill_after, start

TASKS = ("miniwob/click-tab-2?seed=1", "miniwob/click-collapsible?seed=1")
FOUR = ("search.workers=4", "search.iterations=16", "limits.transitions=150")
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


@pytest.mark.parametrize("commit_by", ["replay", "fork"])
def test_a_killed_search_of_four_workers_in_rounds_resumes_to_the_same_actions(commit_by: str, tmp_path: Path) -> None:
    """A run is killed and resumed again and again: each time a Python and a browser start."""
    # The learned policy comes to a page by two ways, and after a resume its elements can have other ids: the same link is [32], not [24].
    settings = (*FOUR, f"search.commit_by={commit_by}", "search.order=selection", "policy.kind=lexical")
    whole, folder, rng = tmp_path / "whole", tmp_path / "run", random.Random(11)
    start(whole, TASKS, CONFIG, *settings).communicate(timeout=120)
    resume(folder, rng.randint(15, 40), *settings)
    assert commits(folder) == commits(whole)


def test_a_killed_search_of_four_workers_in_any_order_keeps_its_committed_actions(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    committed = resume(folder, 100, *FOUR)
    assert any(committed.values())
    assert {name: actions[: len(committed[name])] for name, actions in commits(folder).items() if name in committed} == committed


def resume(folder: Path, lines: int, *settings: str) -> dict[str, list[str]]:
    """Start, kill after so many lines, start again and let it end whole. What was committed at the kill."""
    killed = kill_after(start(folder, TASKS, CONFIG, *settings), folder, lines, 60)
    assert gone(folder) == [], "a killed run left processes"
    committed = commits(folder)
    last = start(folder, TASKS, CONFIG, *settings)
    output, _ = last.communicate(timeout=120)
    assert killed and last.returncode == 0, output.decode()
    assert faults(folder) == []
    return committed


def test_ctrl_c_ends_cleanly_with_exit_code_130_and_resume_continues(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = start(folder, TASKS, CONFIG)
    deadline = time.monotonic() + 60
    while process.poll() is None and journalled(folder) < 15:
        assert time.monotonic() < deadline, "nothing was journalled"
        time.sleep(0.01)
    before = journalled(folder)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output.decode()
    assert f"exact resume {folder}" in output.decode()
    assert "Traceback" not in output.decode()
    assert gone(folder) == []
    assert len(RunFolder.open(folder).manifest.tasks) == 2
    again = start(folder, TASKS, CONFIG)
    output, _ = again.communicate(timeout=120)
    assert again.returncode == 0, output.decode()
    assert faults(folder) == [] and journalled(folder) > before
