"""`exact rescore` on toy environments."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.benchmarks import open as cli_environments
from exact.cli import bench as cli_bench
from exact.cli.main import main
from exact.environments.base import EnvironmentFactory
from exact.environments.toy.factory import ToyFactory
from exact.errors import ActionError, UncertainCommit, UsageError
from exact.evaluation import replay as replaying
from exact.evaluation.folder import BenchFolder, Replay
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs, append_line
from exact.task import Task
from tests.evaluation.toys import WORLD, run, settings, toy_bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BenchFolder:
    """Run three attempts, and open toy environments for their replays."""

    @asynccontextmanager
    async def opened(task: Task, *rest: object, **options: object) -> AsyncIterator[EnvironmentFactory]:
        yield ToyFactory(WORLD)

    monkeypatch.setattr(cli_environments, "open_environments", opened)
    monkeypatch.setattr(cli_bench, "rewards_of", lambda folder: {})
    monkeypatch.setattr(cli_environments, "environment_kind", lambda task, **options: "toy")
    folder = toy_bench(tmp_path / "bench", settings("mcts"), seeds=3)
    asyncio.run(run(folder))
    return folder


def test_an_attempt_that_is_not_taken_again_ends_no_other(
    bench: BenchFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refused(environments: EnvironmentFactory, task: Task, state: AttemptState, blobs: Blobs) -> Replay:
        if task.seed == 0:
            raise UsageError("its actions are not sent twice")
        return Replay(task=task.id, score=1.0, match="same")

    monkeypatch.setattr(replaying, "replay", refused)
    assert main(["rescore", str(bench.path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "! mcts toy/maze?seed=0: its actions are not sent twice" and len(said) == 3


@pytest.mark.parametrize("error", [ZeroDivisionError("by zero"), UncertainCommit("a crash"), ActionError("no such button")])
def test_an_evaluator_that_raises_ends_no_other(
    bench: BenchFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    async def broken(environments: EnvironmentFactory, task: Task, state: AttemptState, blobs: Blobs) -> Replay:
        if task.seed == 0:
            raise error
        return Replay(task=task.id, score=1.0, match="same")

    monkeypatch.setattr(replaying, "replay", broken)
    assert main(["rescore", str(bench.path)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("! mcts toy/maze?seed=0: ") and said[0].endswith(str(error)) and len(said) == 3


def test_results_are_printed_though_something_breaks_it_off(
    bench: BenchFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def interrupted(environments: EnvironmentFactory, task: Task, state: AttemptState, blobs: Blobs) -> Replay:
        if task.seed == 1:
            raise KeyboardInterrupt
        return Replay(task=task.id, score=1.0, match="same")

    monkeypatch.setattr(replaying, "replay", interrupted)
    assert main(["rescore", str(bench.path), "--json"]) == 130
    assert json.loads(capsys.readouterr().out)["task"] == "toy/maze?seed=0"


def test_a_score_that_the_judge_did_not_give_then_counts_when_it_is_adopted(bench: BenchFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder, before = bench.agent("mcts")[0], bench.results()[1]
    (line,) = (each for each in folder.results() if each.task == before.task)
    append_line(
        folder.path / "results.jsonl", type(line)(task=line.task, seed=1, agent="mcts", status="failed", reason="the judge is down")
    )
    assert main(["rescore", str(bench.path), "--adopt"]) == 0
    assert f"* mcts {before.task}: none -> {before.score:g}" in capsys.readouterr().out
    after = bench.results()[1]
    assert (after.status, after.score, after.live_score, after.replay) == ("scored", before.score, None, "same")
    asyncio.run(run(bench))
    assert bench.results()[1] == after, "and it is not attempted again"
