"""What a run says of itself on the way and at its end."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import pytest
from rich.console import Console

from exact.action import Action
from exact.cli import attempt as progress_module
from exact.cli.attempt import RunProgress
from exact.cli.main import main
from exact.config import Config, dump
from exact.observation import Element, Observation
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Manifest, ResultLine, RunFolder
from exact.search.tree import Edge
from exact.task import Task

TASKS = tuple(Task(id=id, instruction="Do it.") for id in ("shop/a", "shop/b"))


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", Manifest(tasks=TASKS, agent="x"), dump(Config()))


def end(run: RunFolder, task: Task, status: str, score: float | None = None) -> ResultLine:
    line = ResultLine(task=task.id, seed=0, agent="x", status=status, score=score)
    run.add_result(line)
    return line


def test_the_last_of_rerun_attempts_counts(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    for task in TASKS:
        end(run, task, "failed")
    with RunProgress(run, Config(), as_json=False) as progress:
        assert "2 tasks, 0 done" in capsys.readouterr().err
        for task, score in zip(TASKS, (1.0, 0.0), strict=True):
            progress.finished(task, end(run, task, "scored", score), run.path)
    assert "\n1 of 2 solved. Reports:" in capsys.readouterr().out


@pytest.mark.parametrize(("score", "mark"), [(1.0, "✓"), (0.3, "✗"), (0.0, "✗")])
def test_only_a_whole_solution_gets_a_tick(run: RunFolder, capsys: pytest.CaptureFixture[str], score: float, mark: str) -> None:
    with RunProgress(run, Config(), as_json=False) as progress:
        progress.finished(TASKS[0], end(run, TASKS[0], "scored", score), run.path)
    assert capsys.readouterr().out.startswith(f"{mark} shop/a")


@pytest.mark.parametrize("terminal", [True, False])
def test_on_a_terminal_it_shows_nodes_best_value_money_and_time_and_else_it_is_quiet(
    terminal: bool, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    said, state = io.StringIO(), AttemptState(Config())
    monkeypatch.setattr(progress_module, "Console", lambda stderr: Console(file=said, force_terminal=terminal, width=160))
    with RunProgress(run, Config(), as_json=False) as progress:
        progress.event(TASKS[0], state, ev.Ended(reason="it is over"))
    told = said.getvalue()
    if not terminal:
        assert not told
    for words in ("1/2", "shop/a", "1 node", "best", "$0.0000", " s") if terminal else ():
        assert words in told, words


async def test_without_a_terminal_it_says_every_now_and_then_how_far_it_is(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "BEAT", 0.01)
    state, said = AttemptState(Config()), ""
    tree = state.search.tree
    seen = Observation(text='[3] button "Buy"', elements=(Element(id="3", role="button", name="Buy"),))
    tree.root.observation, _ = run.blobs.put_observation(seen)
    tree.root.edges = (Edge(action=Action(name="click", args=("3",), key="click [3]"), prior=1.0),)
    state.spending.task.spend("calls", 41)
    state.spending.task.spend("tokens", 38_200)
    with RunProgress(run, Config(), as_json=True) as progress:
        async with progress.told():
            progress.event(TASKS[0], state, ev.Acted(node=0, edge=0, action="click [3]"))
            while not said:
                await asyncio.sleep(0.01)
                said = capsys.readouterr().err
            progress.finished(TASKS[0], end(run, TASKS[0], "scored", 1.0), run.path)
            capsys.readouterr()
            await asyncio.sleep(0.05)
    assert 'shop/a: 0 s, 0 iterations, 41 calls, 38,200 tokens, 0 actions committed, last action: click button "Buy"' in said
    assert not capsys.readouterr().err, "nothing is said of an attempt that has ended"


async def test_a_line_is_said_though_the_state_of_its_action_cannot_be_read(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "BEAT", 0.01)
    state, said = AttemptState(Config()), ""
    state.search.tree.root.observation = "0" * 64
    state.search.tree.root.edges = (Edge(action=Action(name="click", args=("3",), key="click [3]"), prior=1.0),)
    with RunProgress(run, Config(), as_json=True) as progress:
        async with progress.told():
            progress.event(TASKS[0], state, ev.Acted(node=0, edge=0, action="click [3]"))
            async with asyncio.timeout(5):
                while not said:
                    await asyncio.sleep(0.01)
                    said = capsys.readouterr().err
    assert "last action: click [3]" in said


def test_seconds_pass_on_a_terminal_while_a_model_thinks(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    said, now = io.StringIO(), 100.0
    monkeypatch.setattr(progress_module, "Console", lambda stderr: Console(file=said, force_terminal=True, width=160))
    monkeypatch.setattr("exact.cli.attempt.monotonic", lambda: now)
    with RunProgress(run, Config(), as_json=False) as progress:
        progress.event(TASKS[0], AttemptState(Config()), ev.Ended(reason="it is over"))
        now = 142.0
        assert progress._live is not None
        progress._live.refresh()
    assert "42 s" in said.getvalue()


def way_on(run: RunFolder, capsys: pytest.CaptureFixture[str], *lines: ResultLine) -> list[str]:
    """Return the last lines that a run of these results prints: its counts, and what to do."""
    with RunProgress(run, Config(), as_json=False) as progress:
        for task, line in zip(TASKS, lines, strict=False):
            run.add_result(line)
            progress.finished(task, line, run.path / "report.html")
    return capsys.readouterr().out.split("\n\n")[-1].splitlines()


def line(id: str, status: str = "failed", **fields: object) -> ResultLine:
    return ResultLine(**({"task": id, "seed": 0, "agent": "x", "status": status} | fields))  # type: ignore[arg-type]


def test_a_failed_run_names_one_way_on(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    counts, way = way_on(run, capsys, line("shop/a"), line("shop/b", "scored", score=1.0))
    assert counts.startswith("1 of 1 solved, 1 failed, without a score. Reports:")
    assert way == f"When the cause is fixed, run: exact resume {run.path}"


def test_a_run_that_cannot_be_resumed_says_so_and_names_no_resume(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    _, way = way_on(run, capsys, line("shop/a", resumable=False), line("shop/b", "scored", score=1.0))
    assert way == "Resuming cannot help: when the cause is fixed, start a new run."


def test_of_two_kinds_of_failures_the_one_that_resuming_helps_is_named_first(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    _, way = way_on(run, capsys, line("shop/a", resumable=False), line("shop/b"))
    assert way == f"When the cause is fixed, run: exact resume {run.path} (1 of the 2 failed need a new run)"


def test_a_run_without_failures_names_no_way_on(run: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(way_on(run, capsys, line("shop/a", "judged", value=0.4), line("shop/b", "scored", score=0.0))) == 1


def test_a_run_without_a_key_is_wrong_usage_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    config = Path(__file__).parents[2] / "shells" / "configs" / "rmcts_gpt-4o.yaml"
    assert main(["run", "miniwob/click-test", "--config", str(config), "--out", str(tmp_path / "new")]) == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert "set the environment variable OPENAI_API_KEY" in said and not (tmp_path / "new").exists()
