"""Figures of a benchmark, agent by agent, as data for tables, plots and pages.

Comparison of two runs, task by task.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from exact.config import Config, load_recorded
from exact.errors import UsageError
from exact.evaluation.folder import BenchFolder, Replay, Result, result_of
from exact.evaluation.plan import unequal_judges, unequal_limits
from exact.evaluation.statistics import Estimate, bootstrap, differences, mcnemar, rate, sign_flip
from exact.runs.journal.store import RunFolder, read_lines
from exact.task import Task

SOLVED = 1.0
"""Lowest score that counts as success."""
COSTS = ("actions", "transitions", "evaluations", "calls", "tokens", "cost", "seconds")
"""Costs of an attempt: committed actions, environment steps with replays, evaluations, model calls, tokens, US dollars, wall seconds."""

Reward = Callable[[float], float]
"""Function from a benchmark's raw figure to a reward in [0, 1]."""


class Versus(NamedTuple):
    """Comparison of one agent with another, paired on task and seed."""

    gain: Estimate
    """Difference of the success rates."""
    wins: int
    losses: int
    ties: int
    unpaired: int
    """Number of attempts that only one of them has a score for."""
    mcnemar: float
    by_task: float
    """p value of the test that flips the signs of whole tasks: seeds of one task are not independent."""


class AgentSummary(NamedTuple):
    """Figures of one agent."""

    agent: str
    oracle: bool
    """Whether the agent's value function is the benchmark's evaluator. Its success is headroom, never a result."""
    void: bool
    """Whether an oracle saw no score in any of its attempts, so that its success is not even headroom."""
    trained_with_reward: bool
    """Whether the agent read the environment's rewards in any of its attempts."""
    attempts: int
    scored: int
    success: Estimate
    score: Estimate
    partial: bool
    """Whether any score lies between 0 and 1, so that `score` differs from `success`."""
    live: Estimate | None
    """Success in live environments that search had used; None if there were none."""
    rewards: dict[str, Estimate]
    """Rewards by name, over all scored attempts. An attempt without a raw figure counts 0."""
    costs: dict[str, float]
    """Mean costs of the scored attempts, by kind; NaN if the cost of one is unknown."""
    restores: float
    drifted: int
    failed: int
    """Number of attempts that an infrastructure failure ended, after all reruns. They have no score and are in no share."""
    missing: dict[str, int]
    """Number of attempts by `ResultLine.missing`: `answer` is among the scored attempts, the others are among the failed ones."""
    replays: dict[str, int]
    """Number of replays that differed from their attempts, by `Replay.match`. Failed replays are counted in `failed`."""
    reruns: int
    judged: int
    """Number of attempts that only the agent itself evaluated. They are in no share."""
    needs_user: int
    """Number of attempts that wait for an act that only a person can do, such as a captcha. No share counts them."""


def task_of(id: str) -> str:
    """Return a task id without its seed."""
    return id.partition("?seed=")[0]


def scores(results: Iterable[Result], of: Callable[[Result], float | None] | None = None) -> dict[str, float]:
    """Return success, or the figure `of` a result, by task id with seed, for all scored attempts that have it."""
    read = of or (lambda each: None if each.score is None else float(each.score >= SOLVED))
    return {each.task: value for each in results if each.status == "scored" and (value := read(each)) is not None}


def grouped(values: Mapping[str, float]) -> dict[str, list[float]]:
    """Group values by task: one list of values for the seeds of each task."""
    by_task: dict[str, list[float]] = {}
    for id, value in values.items():
        by_task.setdefault(task_of(id), []).append(value)
    return by_task


def summarise(agent: str, results: Sequence[Result], rewards: Mapping[str, Reward] | None = None) -> AgentSummary:
    """Compute the figures of one agent."""
    scored = [each for each in results if each.status == "scored" and each.score is not None]
    rewards_by_name = {name: rate(grouped(scores(scored, _reading(reward)))) for name, reward in (rewards or {}).items() if scored}
    promoted = any(each.replay for each in scored)
    live = rate(grouped(scores(scored, lambda each: None if each.live_score is None else float(each.live_score >= SOLVED))))
    return AgentSummary(
        agent=agent,
        oracle=any(each.oracle for each in results),
        void=is_void(results),
        trained_with_reward=any(each.trained_with_reward for each in results),
        attempts=len(results),
        scored=len(scored),
        success=rate(grouped(scores(scored))),
        score=bootstrap(grouped(scores(scored, lambda each: each.score))),
        partial=any(each.score not in (0.0, 1.0) for each in scored),
        live=live if promoted else None,
        rewards=rewards_by_name,
        costs={kind: _mean([getattr(each, kind) for each in scored]) for kind in COSTS},
        restores=_mean([each.restores for each in scored]),
        drifted=sum(each.drifted for each in scored),
        failed=sum(each.status == "failed" for each in results),
        missing=dict(Counter(each.missing for each in results if each.missing)),
        replays=dict(Counter(each.replay for each in results if each.replay not in ("", "same", "failed"))),
        reruns=sum(each.attempts - 1 for each in results),
        judged=sum(each.status == "judged" for each in results),
        needs_user=sum(each.status == "needs_user" for each in results),
    )


def is_void(results: Sequence[Result]) -> bool:
    """Return whether the results are those of an oracle that saw no score."""
    return any(each.oracle for each in results) and all(each.informed == 0 for each in results if each.oracle and each.status != "failed")


def versus(a: Sequence[Result], b: Sequence[Result]) -> Versus:
    """Compare the results of one agent with those of another, paired on task and seed."""
    scores_a, scores_b = scores(a), scores(b)
    both = [id for id in scores_a if id in scores_b]
    by_task = differences(scores_a, scores_b, {id: task_of(id) for id in scores_a})
    wins, losses = sum(scores_a[id] > scores_b[id] for id in both), sum(scores_a[id] < scores_b[id] for id in both)
    return Versus(
        gain=bootstrap(by_task),
        wins=wins,
        losses=losses,
        ties=len(both) - wins - losses,
        unpaired=len(scores_a.keys() ^ scores_b.keys()),
        mcnemar=mcnemar(wins, losses),
        by_task=sign_flip(by_task),
    )


def advice(base: AgentSummary, other: AgentSummary, found: Versus) -> str:
    """Return in one sentence what `other` brings over `base`, for how much more, and which to use. `found`: `other` against `base`.

    The cost is tokens, or environment steps if neither asked a model. How many tasks would show a gain is that of an interval whose width
    falls with the square root of their number.
    """
    gain, low, high, tasks = found.gain
    if math.isnan(low):
        return f"{other.agent} against {base.agent}: {tasks} task{'' if tasks == 1 else 's'} cannot tell: run at least ten"
    kind = "tokens" if base.costs["tokens"] or other.costs["tokens"] else "transitions"
    unit, less, more = "tokens" if kind == "tokens" else "steps", base.costs[kind], other.costs[kind]
    times = f"{more / less:.1f} times the {unit}" if less else f"{more:,.0f} {unit} in place of none"
    if math.isnan(more + less):
        times = f"an unknown number of {unit}"
    count = f"{abs(100 * gain):.0f} {'fewer' if gain < 0 else 'more'}" if gain else "as many"
    solves = f"{count} of 100 attempts [{100 * low:.0f}, {100 * high:.0f}], for {times}"
    if low > 0:
        price = f", {(more - less) / gain:,.0f} {unit} for each further one" if more > less else ""
        return f"{other.agent} solves {solves}{price}: use {other.agent} if that is worth it"
    if high < 0:
        return f"{other.agent} solves {solves}: use {base.agent}"
    wanted = math.ceil(tasks * ((high - low) / 2 / abs(gain)) ** 2) if gain else 0
    told = f", or run more: some {max(wanted, tasks + 1):,} tasks would show a difference of this size" if wanted else ""
    return f"no difference is shown: {other.agent} solves {solves}: use {base.agent if more >= less else other.agent}{told}"


def by_agent(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Group results by agent, in the given order."""
    groups: dict[str, list[Result]] = {}
    for each in results:
        groups.setdefault(each.agent, []).append(each)
    return groups


def _reading(reward: Reward) -> Callable[[Result], float]:
    return lambda each: 0.0 if each.raw is None else reward(each.raw)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if values and len(known) == len(values) else math.nan


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
