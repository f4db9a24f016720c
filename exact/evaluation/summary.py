"""What the results of a benchmark say, agent by agent, as data. Tables, plots and pages are made of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from exact.evaluation.folder import Result
from exact.evaluation.statistics import Estimate, bootstrap, differences, mcnemar, rate, sign_flip

SOLVED = 1.0
"""The score that counts as success."""
COSTS = ("actions", "transitions", "evaluations", "calls", "tokens", "cost", "seconds")
"""What an attempt takes: committed actions, environment steps with replays, judgements, model calls, tokens, US dollars, wall time."""

Reward = Callable[[float], float]
"""Another reading of a benchmark's own figure, in [0, 1]."""


class Versus(NamedTuple):
    """One agent against another, on the same task and seed."""

    gain: Estimate
    """Difference of success."""
    wins: int
    losses: int
    ties: int
    unpaired: int
    """Attempts that only one of them has a score for."""
    mcnemar: float
    by_task: float
    """p of the test that flips whole tasks: seeds of one task are not independent."""


class AgentSummary(NamedTuple):
    """One agent."""

    agent: str
    oracle: bool
    """It was told the benchmark's verdict: headroom, never a result."""
    void: bool
    """An oracle that no environment told any verdict, in all of its attempts: not even headroom."""
    attempts: int
    scored: int
    success: Estimate
    score: Estimate
    partial: bool
    """Whether any score lies between 0 and 1, so that `score` tells more than `success`."""
    live: Estimate | None
    """Success where attempts ended, with environments that search had used; None where no such environment was."""
    rewards: dict[str, Estimate]
    """By other readings of the benchmark's own figure, of all scored attempts: one that came to no such figure counts 0."""
    costs: dict[str, float]
    """Means of all scored attempts; NaN where one is not known."""
    restores: float
    drifted: int
    failed: int
    """Attempts that the infrastructure ended, after all reruns: no score, in no share."""
    missing: dict[str, int]
    """How many lacked what, as `Line.missing` names it: `answer` among the scored, the others among the failed."""
    replays: dict[str, int]
    """How many replays of committed actions were not the same as their attempts, by verdict; those that failed are among `failed`."""
    reruns: int
    judged: int
    """Attempts that nobody but the agent judged: in no share."""


def task_of(id: str) -> str:
    """What seeds are repetitions of."""
    return id.partition("?seed=")[0]


def scores(results: Iterable[Result], of: Callable[[Result], float | None] | None = None) -> dict[str, float]:
    """Success by task and seed, of what has a score; or another figure."""
    read = of or (lambda each: None if each.score is None else float(each.score >= SOLVED))
    return {each.task: value for each in results if each.status == "scored" and (value := read(each)) is not None}


def grouped(values: Mapping[str, float]) -> dict[str, list[float]]:
    """By task, its seeds together."""
    found: dict[str, list[float]] = {}
    for id, value in values.items():
        found.setdefault(task_of(id), []).append(value)
    return found


def summarise(agent: str, results: Sequence[Result], rewards: Mapping[str, Reward] | None = None) -> AgentSummary:
    """The figures of one agent."""
    done = [each for each in results if each.status == "scored" and each.score is not None]
    read = {name: rate(grouped(scores(done, _reading(reward)))) for name, reward in (rewards or {}).items() if done}
    promoted = any(each.replay for each in done)
    live = rate(grouped(scores(done, lambda each: None if each.live_score is None else float(each.live_score >= SOLVED))))
    return AgentSummary(
        agent=agent,
        oracle=any(each.oracle for each in results),
        void=is_void(results),
        attempts=len(results),
        scored=len(done),
        success=rate(grouped(scores(done))),
        score=bootstrap(grouped(scores(done, lambda each: each.score))),
        partial=any(each.score not in (0.0, 1.0) for each in done),
        live=live if promoted else None,
        rewards=read,
        costs={kind: _mean([getattr(each, kind) for each in done]) for kind in COSTS},
        restores=_mean([each.restores for each in done]),
        drifted=sum(each.drifted for each in done),
        failed=sum(each.status == "failed" for each in results),
        missing=dict(Counter(each.missing for each in results if each.missing)),
        replays=dict(Counter(each.replay for each in results if each.replay not in ("", "same", "failed"))),
        reruns=sum(each.attempts - 1 for each in results),
        judged=sum(each.status == "judged" for each in results),
    )


def is_void(results: Sequence[Result]) -> bool:
    """Whether they are an oracle's that was told nothing."""
    return any(each.oracle for each in results) and all(each.told == 0 for each in results if each.oracle and each.status != "failed")


def versus(a: Sequence[Result], b: Sequence[Result]) -> Versus:
    """The first against the second."""
    mine, theirs = scores(a), scores(b)
    both = [id for id in mine if id in theirs]
    by_task = differences(mine, theirs, {id: task_of(id) for id in mine})
    wins, losses = sum(mine[id] > theirs[id] for id in both), sum(mine[id] < theirs[id] for id in both)
    return Versus(
        gain=bootstrap(by_task),
        wins=wins,
        losses=losses,
        ties=len(both) - wins - losses,
        unpaired=len(mine.keys() ^ theirs.keys()),
        mcnemar=mcnemar(wins, losses),
        by_task=sign_flip(by_task),
    )


def by_agent(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by agent, in the order in which they come."""
    found: dict[str, list[Result]] = {}
    for each in results:
        found.setdefault(each.agent, []).append(each)
    return found


def _reading(reward: Reward) -> Callable[[Result], float]:
    return lambda each: 0.0 if each.raw is None else reward(each.raw)


def _mean(values: Sequence[float | None]) -> float:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if values and len(known) == len(values) else math.nan
