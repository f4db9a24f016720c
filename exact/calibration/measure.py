"""Measures of evaluations with known outcomes: Brier score, area under the curve, reliability, and a fitted curve."""

from __future__ import annotations

import random
import statistics
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from exact.agents.recalibrate import Curve

DRAWS = 1000
"""Number of bootstrap draws."""


class Prediction(NamedTuple):
    """One evaluated state and its outcome."""

    task: str
    """Id of the task, with its seed."""
    node: int
    value: float
    """Value in [0, 1]."""
    success: bool

    @property
    def name(self) -> str:
        """The task without its seed. Attempts at several seeds of one task are not independent samples."""
        return self.task.partition("?seed=")[0]


class ReliabilityBin(NamedTuple):
    """One bin of the reliability curve."""

    low: float
    high: float
    states: int
    value: float
    """Mean of the values in the bin."""
    rate: float
    """Share of the states in the bin that succeeded."""


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
    """A measure with its 95 percent interval, by resampling tasks with all their seeds."""

    value: float
    low: float
    high: float


def brier(predictions: Sequence[Prediction]) -> float:
    """Return the mean squared error of values as probabilities: 0 is perfect, 0.25 is a coin. Requires at least one prediction."""
    return statistics.fmean((one.value - one.success) ** 2 for one in predictions)


def ece(predictions: Sequence[Prediction], bins: int = 5) -> float:
    """Return the expected calibration error: the mean distance of values from the rate of success, by bins of equal width.

    0 is calibrated. Requires at least one prediction. Source: Guo et al., On Calibration of Modern Neural Networks (2017).
    """
    return sum(part.states * abs(part.value - part.rate) for part in reliability(predictions, bins)) / len(predictions)


def auc(predictions: Sequence[Prediction]) -> float | None:
    """Return the probability that a successful state is valued above an unsuccessful one; a tie counts half.

    None if all outcomes are equal.
    """
    won, pairs = _comparisons(predictions)
    return won / pairs if pairs else None


def auc_within(predictions: Sequence[Prediction]) -> float | None:
    """Return the AUC over pairs of states of the same task: the part of the values that helps a search, which compares states of one task.

    A value function that only separates easy tasks from hard ones has a high AUC, and 0.5 here. None if no task has states of both
    outcomes.
    """
    counted = [_comparisons(part) for part in _grouped(predictions, lambda one: one.task)]
    pairs = sum(each for _, each in counted)
    return sum(won for won, _ in counted) / pairs if pairs else None


def _comparisons(predictions: Sequence[Prediction]) -> tuple[float, int]:
    """Return in how many pairs of a successful and an unsuccessful state the first has the higher value, ties half, and of how many."""
    won = sorted(one.value for one in predictions if one.success)
    lost = [one.value for one in predictions if not one.success]
    below = sum(bisect_left(won, value) + bisect_right(won, value) for value in lost)
    return len(won) * len(lost) - below / 2, len(won) * len(lost)


def _grouped(predictions: Sequence[Prediction], key: Callable[[Prediction], str]) -> list[list[Prediction]]:
    found: dict[str, list[Prediction]] = {}
    for one in predictions:
        found.setdefault(key(one), []).append(one)
    return list(found.values())


def reliability(predictions: Sequence[Prediction], bins: int = 5) -> list[ReliabilityBin]:
    """Return the predictions by value, in bins of equal width. Empty bins are left out."""
    parts: dict[int, list[Prediction]] = {}
    for one in predictions:
        parts.setdefault(min(bins - 1, int(one.value * bins)), []).append(one)
    return [
        ReliabilityBin(
            i / bins, (i + 1) / bins, len(part), statistics.fmean(j.value for j in part), statistics.fmean(j.success for j in part)
        )
        for i, part in sorted(parts.items())
    ]


def fit(predictions: Sequence[Prediction], about: str = "") -> Curve:
    """Return the non-decreasing curve with the least squared error, by pooling adjacent violators (isotonic regression).

    It is level from the first to the last value of each pool, at its success rate, and straight between pools. Requires at least one
    prediction.
    """
    pools = list[_Pool]()
    for value in sorted({one.value for one in predictions}):
        same = [one.success for one in predictions if one.value == value]
        pools.append(_Pool(value, value, sum(same), len(same)))
        while len(pools) > 1 and pools[-2].rate >= pools[-1].rate:
            last = pools.pop()
            pools[-1] = _Pool(pools[-1].first, last.last, pools[-1].won + last.won, pools[-1].states + last.states)
    points = [(value, pool.rate) for pool in pools for value in dict.fromkeys((pool.first, pool.last))]
    return Curve(values=tuple(value for value, _ in points), probabilities=tuple(rate for _, rate in points), about=about)


def refitted(predictions: Sequence[Prediction], folds: int = 5) -> list[Prediction]:
    """Return each prediction through a curve fitted to other tasks: the effect of recalibration on unseen tasks. Empty with one task."""
    tasks = sorted({one.name for one in predictions})
    if len(tasks) < 2:
        return []
    found = list[Prediction]()
    for fold in range(min(folds, len(tasks))):
        held_out = set(tasks[fold :: min(folds, len(tasks))])
        curve = fit([one for one in predictions if one.name not in held_out])
        found += [one._replace(value=curve(one.value)) for one in predictions if one.name in held_out]
    return found


def interval(
    predictions: Sequence[Prediction], figure: Callable[[Sequence[Prediction]], float | None], seed: int = 0
) -> BootstrapInterval | None:
    """Return a measure with its interval; None if the measure is None. Draws without a value are left out."""
    value = figure(predictions)
    if value is None:
        return None
    rng, tasks = random.Random(seed), _grouped(predictions, lambda one: one.name)
    copies: dict[tuple[int, int], list[Prediction]] = {}

    def drawn() -> list[Prediction]:
        """Return the states of as many tasks as there are. A task that is drawn again counts as another task."""
        sample, times = list[Prediction](), Counter[int]()
        for at in rng.choices(range(len(tasks)), k=len(tasks)):
            key = (at, times[at])
            times[at] += 1
            if key not in copies:
                copies[key] = [one._replace(task=f"{one.task} {key[1]}") for one in tasks[at]] if key[1] else tasks[at]
            sample += copies[key]
        return sample

    found = sorted(each for each in (figure(drawn()) for _ in range(DRAWS)) if each is not None) or [value]
    return BootstrapInterval(value, found[int(0.025 * (len(found) - 1))], found[int(0.975 * (len(found) - 1))])
