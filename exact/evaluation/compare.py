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
    run, parent = RunFolder.open(path), path.resolve().parent
    if parent.name == "agents" and (parent.parent / "bench.json").exists():
        agent = run.manifest.agent
        results = [each for (whose, _), each in BenchFolder(parent.parent).gather().items() if whose == agent]
    else:
        agent, replays = path.name, {each.task: each for each in read_lines(path / "replays.jsonl", Replay)}
        last = {line.task: line for line in run.results()}
        results = [result_of(last[task.id], replays.get(task.id), 1) for task in run.manifest.tasks if task.id in last]
    if not results:
        raise UsageError(f"{path} has no results yet: resume it first")
    return Side(agent, results, load_recorded(path), {task.id: task for task in run.manifest.tasks})


def compare(a: Side, b: Side) -> Comparison:
    """Compare two runs. Warnings name unequal limits, evaluator models and tasks.

    Raises UsageError if the runs have no scored task and seed in common.
    """
    scores_a, scores_b = scores(a.results), scores(b.results)
    both = scores_a.keys() & scores_b.keys()
    if not both:
        raise UsageError(f"{a.name} and {b.name} have no scored task and seed in common: nothing to compare")
    common_a, common_b = ([each for each in side.results if each.task in both] for side in (a, b))
    return Comparison(
        a=summarise(a.name, common_a),
        b=summarise(b.name, common_b),
        versus=versus(a.results, b.results),
        tasks=_by_task({id: scores_a[id] for id in scores_a if id in both}, scores_b),
        only=(len(scores_a) - len(both), len(scores_b) - len(both)),
        warnings=_warnings(common_a, common_b, a, b),
    )


def _by_task(scores_a: dict[str, float], scores_b: dict[str, float]) -> list[TaskPair]:
    pairs = []
    for task in dict.fromkeys(task_of(id) for id in scores_a):
        ids = [id for id in scores_a if task_of(id) == task]
        wins, losses = sum(scores_a[id] > scores_b[id] for id in ids), sum(scores_a[id] < scores_b[id] for id in ids)
        a, b = (sum(side[id] for id in ids) / len(ids) for side in (scores_a, scores_b))
        pairs.append(TaskPair(task, a, b, len(ids), wins, losses))
    return sorted(pairs, key=lambda each: (each.losses - each.wins, each.task))


def _warnings(common_a: Sequence[Result], common_b: Sequence[Result], a: Side, b: Side) -> list[str]:
    warnings = [
        f"{each.name} is an oracle: "
        + ("no environment reported a score to it, so it shows no headroom" if is_void(each.results) else "it saw the benchmark's score")
        for each in (a, b)
        if any(line.oracle for line in each.results)
    ]
    warnings += [f"{each.name} read the environment's rewards" for each in (a, b) if any(line.trained_with_reward for line in each.results)]
    for each in (a, b):
        if used := sum(line.status == "scored" and bool(line.promoted) and not line.replay for line in each.results):
            warnings.append(
                f"{used} scores of {each.name} are of environments that search had used: `exact rescore RUN --adopt` uses fresh ones"
            )
    both = [(each.name, each.config) for each in (a, b)]
    warnings += [f"limits.{kind} differs ({values}): the budgets were not equal" for kind, values in unequal_limits(both).items()]
    warnings += [
        f"models.parts.{part} differs ({values}): the evaluators asked different models" for part, values in unequal_judges(both).items()
    ]
    if other := [each.task for each in common_a if a.tasks.get(each.task) != b.tasks.get(each.task)]:
        names = ", ".join(other[:3]) + (", ..." if other[3:] else "")
        warnings.append(f"{len(other)} tasks differ in their instruction or evaluator: {names}")
    return warnings
