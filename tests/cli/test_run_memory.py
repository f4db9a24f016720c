"""What `exact run` makes of `--allow-same-task`."""

from __future__ import annotations

from pathlib import Path

import pytest

import exact.cli.attempt
from exact.cli.main import main
from exact.config import Config
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner


@pytest.mark.parametrize("allowed", [True, False])
def test_reflections_of_the_same_task_are_left_out_of_a_benchmark_unless_they_are_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    made: list[Runner] = []

    def attempt(folder: RunFolder, config: Config, **_: object) -> int:
        made.append(Runner(folder=folder, config=config, open_environments=lambda task: pytest.fail("nothing is opened")))
        return 0

    monkeypatch.setattr(exact.cli.attempt, "attempt", attempt)
    flag = ["--allow-same-task"] if allowed else []
    assert main(["run", "miniwob/click-test", "--out", str(tmp_path / "run"), *flag]) == 0
    assert made[0].config.reflection.exclude_same_task is not allowed
