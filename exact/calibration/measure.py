"""Figures of judgements with known outcomes: Brier score, area under the curve, reliability, and a fitted curve."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exact.agents.recalibrate import Curve

DRAWS = 1000
"""Of the bootstrap."""


class Prediction(NamedTuple):
    """One judged state and what became of it."""

    task: str
    node: int
    value: float
    """In [0, 1]."""
    success: bool


class ReliabilityBin(NamedTuple):
    """One part of the reliability curve."""

    low: float
    high: float
    states: int
    value: float
    """Mean of the judgements in it."""
    rate: float
    """Share of them that succeeded."""


class _Pool(NamedTuple):
    """Neighbouring values that share one rate."""

    first: float
    last: float
    won: int
    states: int

    @property
    def rate(self) -> float:
        return self.won / self.states


class BootstrapInterval(NamedTuple):
    """A figure with its 95 percent interval, by resampling tasks."""

    value: float
    low: float
    high: float


def brier(judged: Sequence[Prediction]) -> float:
    """Mean squared error of values as probabilities: 0 is perfect, 0.25 is a coin. `judged` is not empty."""
    return statistics.fmean((one.value - one.success) ** 2 for one in judged)


def auc(judged: Sequence[Prediction]) -> float | None:
    """How often a state that came to success is valued above one that did not; a tie counts half. None where all came out alike."""
    won = sorted(one.value for one in judged if one.success)
    lost = [one.value for one in judged if not one.success]
    if not won or not lost:
        return None
    return statistics.fmean(statistics.fmean((a > b) + 0.5 * (a == b) for a in won) for b in lost)


def reliability(judged: Sequence[Prediction], bins: int = 5) -> list[ReliabilityBin]:
    """By value, in parts of equal width; empty ones are left out."""
    parts: dict[int, list[Prediction]] = {}
    for one in judged:
        parts.setdefault(min(bins - 1, int(one.value * bins)), []).append(one)
    return [
        ReliabilityBin(
            i / bins, (i + 1) / bins, len(part), statistics.fmean(j.value for j in part), statistics.fmean(j.success for j in part)
        )
        for i, part in sorted(parts.items())
    ]


def fit(judged: Sequence[Prediction], about: str = "") -> Curve:
    """The curve that never falls with the least squared error, by pooling adjacent violators (isotonic regression).

    Level from the first to the last value of each pool, at its success rate; straight between pools. `judged` is not empty.
    """
    pools = list[_Pool]()
    for value in sorted({one.value for one in judged}):
        same = [one.success for one in judged if one.value == value]
        pools.append(_Pool(value, value, sum(same), len(same)))
        while len(pools) > 1 and pools[-2].rate >= pools[-1].rate:
            last = pools.pop()
            pools[-1] = _Pool(pools[-1].first, last.last, pools[-1].won + last.won, pools[-1].states + last.states)
    points = [(value, pool.rate) for pool in pools for value in dict.fromkeys((pool.first, pool.last))]
    return Curve(values=tuple(value for value, _ in points), probabilities=tuple(rate for _, rate in points), about=about)


def refitted(judged: Sequence[Prediction], folds: int = 5) -> list[Prediction]:
    """Each judgement through a curve fitted to other tasks: what recalibrating would do on tasks not seen. Empty with one task."""
    tasks = sorted({one.task for one in judged})
    if len(tasks) < 2:
        return []
    found = list[Prediction]()
    for fold in range(min(folds, len(tasks))):
        held = set(tasks[fold :: min(folds, len(tasks))])
        curve = fit([one for one in judged if one.task not in held])
        found += [one._replace(value=curve(one.value)) for one in judged if one.task in held]
    return found


def interval(
    judged: Sequence[Prediction], figure: Callable[[Sequence[Prediction]], float | None], seed: int = 0
) -> BootstrapInterval | None:
    """A figure with its interval; None where the figure is. Draws for which it has no value are left out."""
    value = figure(judged)
    if value is None:
        return None
    by_task: dict[str, list[Prediction]] = {}
    for one in judged:
        by_task.setdefault(one.task, []).append(one)
    dice, tasks = random.Random(seed), list(by_task.values())
    drawn = (figure([one for part in dice.choices(tasks, k=len(tasks)) for one in part]) for _ in range(DRAWS))
    found = sorted(each for each in drawn if each is not None) or [value]
    return BootstrapInterval(value, found[int(0.025 * (len(found) - 1))], found[int(0.975 * (len(found) - 1))])
