"""What a run says of itself on the way and at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.cli.progress import Progress
from exact.config import Config, dump
from exact.runs.store import Line, Manifest, RunFolder
from exact.task import Task

TASKS = tuple(Task(id=id, instruction="Do it.") for id in ("shop/a", "shop/b"))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", Manifest(tasks=TASKS, agent="x"), dump(Config()))


def end(run: RunFolder, task: Task, status: str, score: float | None = None) -> Line:
    line = Line(task=task.id, seed=0, agent="x", status=status, score=score)
    run.add_result(line)
    return line


def test_of_attempts_made_again_the_last_one_counts(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    for task in TASKS:
        end(run, task, "failed")
    with Progress(run, Config(), as_json=False) as progress:
        assert "2 tasks, 0 done" in capsys.readouterr().err
        for task, score in zip(TASKS, (1.0, 0.0), strict=True):
            progress.finished(task, end(run, task, "scored", score), run.path)
    assert "\n1 of 2 solved. Reports:" in capsys.readouterr().out


@pytest.mark.parametrize(("score", "mark"), [(1.0, "✓"), (0.3, "✗"), (0.0, "✗")])
def test_only_a_whole_solution_gets_a_tick(run: RunFolder, capsys: pytest.CaptureFixture[str], score: float, mark: str) -> None:
    with Progress(run, Config(), as_json=False) as progress:
        progress.finished(TASKS[0], end(run, TASKS[0], "scored", score), run.path)
    assert capsys.readouterr().out.startswith(f"{mark} shop/a")
