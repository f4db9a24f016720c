"""Comparison of two runs, task by task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from exact.config import Config, load_recorded
from exact.errors import UsageError
from exact.evaluation.folder import BenchFolder, Replay, Result, result_of
from exact.evaluation.plan import unequal_judges, unequal_limits
from exact.evaluation.summary import AgentSummary, Versus, is_void, scores, summarise, task_of, versus
from exact.runs.journal.store import RunFolder, read_lines
from exact.task import Task


class Side(NamedTuple):
    """One run."""

    name: str
    results: list[Result]
    config: Config
    tasks: dict[str, Task]
    """Tasks by id, with their instructions and evaluators."""


class TaskPair(NamedTuple):
    """One task in both runs, over its seeds."""

    task: str
    a: float
    b: float
    """Shares of the seeds solved by `a` and by `b`, of those that both have a score for."""
    seeds: int
    wins: int
    losses: int


class Comparison(NamedTuple):
    """A against B, on the tasks and seeds that both have a score for."""

    a: AgentSummary
    b: AgentSummary
    versus: Versus
    tasks: list[TaskPair]
    only: tuple[int, int]
    """Numbers of scores that only A has, and only B."""
    warnings: list[str]


def open_side(path: Path) -> Side:
    """Return the results of a run, or of one agent of a benchmark (`BENCH/agents/NAME`). Raises UsageError, JournalError."""
    run, above = RunFolder.open(path), path.resolve().parent
    if above.name == "agents" and (above.parent / "bench.json").exists():
        agent = run.manifest.agent
        found = [each for (whose, _), each in BenchFolder(above.parent).gather().items() if whose == agent]
    else:
        agent, replays = path.name, {each.task: each for each in read_lines(path / "replays.jsonl", Replay)}
        last = {line.task: line for line in run.results()}
        found = [result_of(last[task.id], replays.get(task.id), 1) for task in run.manifest.tasks if task.id in last]
    if not found:
        raise UsageError(f"{path} has no results yet: resume it first")
    return Side(agent, found, load_recorded(path), {task.id: task for task in run.manifest.tasks})


def compare(a: Side, b: Side) -> Comparison:
    """Compare two runs. Warnings name unequal limits, evaluator models and tasks.

    Raises UsageError where the runs have no scored task and seed in common.
    """
    mine, theirs = scores(a.results), scores(b.results)
    both = mine.keys() & theirs.keys()
    if not both:
        raise UsageError(f"{a.name} and {b.name} have no scored task and seed in common: nothing to compare")
    kept_a, kept_b = ([each for each in found.results if each.task in both] for found in (a, b))
    return Comparison(
        a=summarise(a.name, kept_a),
        b=summarise(b.name, kept_b),
        versus=versus(a.results, b.results),
        tasks=_by_task({id: mine[id] for id in mine if id in both}, theirs),
        only=(len(mine) - len(both), len(theirs) - len(both)),
        warnings=_warnings(kept_a, kept_b, a, b),
    )


def _by_task(mine: dict[str, float], theirs: dict[str, float]) -> list[TaskPair]:
    found = []
    for task in dict.fromkeys(task_of(id) for id in mine):
        ids = [id for id in mine if task_of(id) == task]
        wins, losses = sum(mine[id] > theirs[id] for id in ids), sum(mine[id] < theirs[id] for id in ids)
        a, b = (sum(side[id] for id in ids) / len(ids) for side in (mine, theirs))
        found.append(TaskPair(task, a, b, len(ids), wins, losses))
    return sorted(found, key=lambda each: (each.losses - each.wins, each.task))


def _warnings(kept_a: Sequence[Result], kept_b: Sequence[Result], a: Side, b: Side) -> list[str]:
    found = [
        f"{each.name} is an oracle: "
        + ("no environment reported a score to it, so it shows no headroom" if is_void(each.results) else "it saw the benchmark's score")
        for each in (a, b)
        if any(line.oracle for line in each.results)
    ]
    for each in (a, b):
        if used := sum(line.status == "scored" and bool(line.promoted) and not line.replay for line in each.results):
            found.append(
                f"{used} scores of {each.name} are of environments that search had used: `exact rescore RUN --adopt` uses fresh ones"
            )
    both = [(each.name, each.config) for each in (a, b)]
    found += [f"limits.{kind} differs ({values}): the budgets were not equal" for kind, values in unequal_limits(both).items()]
    found += [
        f"models.parts.{part} differs ({values}): the evaluators asked different models" for part, values in unequal_judges(both).items()
    ]
    if other := [each.task for each in kept_a if a.tasks.get(each.task) != b.tasks.get(each.task)]:
        names = ", ".join(other[:3]) + (", ..." if other[3:] else "")
        found.append(f"{len(other)} tasks differ in their instruction or evaluator: {names}")
    return found
