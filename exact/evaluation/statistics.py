"""Intervals and tests for paired, repeated attempts.

Seeds of one task are not independent, so tasks are resampled and not attempts. Values are grouped by task, one for each seed:
`{"miniwob/click-test": [1.0, 0.0], ...}`. Every task weighs the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

ByTask = Mapping[str, Sequence[float]]
DRAWS, LEVEL = 10_000, 0.95
"""Number of bootstrap samples or random sign flips; confidence level."""
_EXACT = 14
"""Largest number of tasks for which every combination of signs is tried."""


class Estimate(NamedTuple):
    """A mean over tasks of means over seeds, with its confidence interval. `low` and `high` are NaN with fewer than two tasks."""

    mean: float
    low: float
    high: float
    tasks: int

    def __str__(self) -> str:
        if not self.tasks:
            return "-"
        return f"{self.mean:.3f}" + ("" if math.isnan(self.low) else f" [{self.low:.3f}, {self.high:.3f}]")


def bootstrap(values: ByTask, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Return the mean with a percentile bootstrap interval over tasks (Efron and Tibshirani 1993, chapter 13).

    Equal seeds give equal intervals. The interval has no width if all tasks have the same mean; for shares, use `rate`.
    """
    means = _means(values)
    if len(means) < 2:
        return Estimate(float(means.mean()) if len(means) else math.nan, math.nan, math.nan, len(means))
    rng, tail = np.random.default_rng(seed), (1 - level) / 2
    rows = max(1, 4_000_000 // len(means))
    samples = [means[rng.integers(0, len(means), (min(rows, draws - at), len(means)))].mean(axis=1) for at in range(0, draws, rows)]
    low, high = np.quantile(np.concatenate(samples), [tail, 1 - tail])
    return Estimate(float(means.mean()), float(low), float(high), len(means))


def rate(values: ByTask, *, level: float = LEVEL, draws: int = DRAWS, seed: int = 0) -> Estimate:
    """Return the mean of shares in [0, 1] with its interval, as `bootstrap` does.

    If all tasks succeed or none does, the other end of the interval is the exact binomial bound (Clopper and Pearson 1934) for as many
    attempts as there are tasks.
    """
    estimate = bootstrap(values, level=level, draws=draws, seed=seed)
    edge = math.pow((1 - level) / 2, 1 / estimate.tasks) if estimate.tasks > 1 else 0.0
    if estimate.tasks > 1 and estimate.low == estimate.high == 1.0:
        return estimate._replace(low=edge)
    if estimate.tasks > 1 and estimate.low == estimate.high == 0.0:
        return estimate._replace(high=1 - edge)
    return estimate


def differences(a: Mapping[str, float], b: Mapping[str, float], task: Mapping[str, str]) -> dict[str, list[float]]:
    """Return the differences a - b, by task, on the attempts that both have. `task` gives the task of each attempt."""
    by_task: dict[str, list[float]] = {}
    for attempt in a:
        if attempt in b:
            by_task.setdefault(task[attempt], []).append(a[attempt] - b[attempt])
    return by_task


def mcnemar(wins: int, losses: int) -> float:
    """Return the two-sided p value of the exact test (McNemar 1947) that a win is as likely as a loss. It assumes independent attempts."""
    n, least = wins + losses, min(wins, losses)
    tail: int = sum(math.comb(n, k) for k in range(least + 1))
    return float(min(1.0, 2 * tail / 2**n))


def sign_flip(values: ByTask, *, draws: int = DRAWS, seed: int = 0) -> float:
    """Return the two-sided p value of Fisher's permutation test that the sign of each task's mean difference is random.

    Up to 14 tasks all combinations of signs are tried. Above, `draws` random ones are, and the observed one counts as another.
    """
    means = _means(values)
    means = means[means != 0]
    if not len(means):
        return 1.0
    observed = abs(float(means.sum())) - 1e-12
    if len(means) <= _EXACT:
        signs = 1 - 2 * ((np.arange(2 ** len(means))[:, None] >> np.arange(len(means))) & 1)
        return float(np.mean(np.abs(signs @ means) >= observed))
    rng = np.random.default_rng(seed)
    signs = rng.choice((-1.0, 1.0), size=(draws, len(means)))
    return float((np.count_nonzero(np.abs(signs @ means) >= observed) + 1) / (draws + 1))


def solved_within(costs: Sequence[float | None], attempts: int) -> list[tuple[float, float]]:
    """Return the share of attempts solved at a cost of at most x, as the points (x, share) at which it rises.

    `costs` holds the cost of each solved attempt; None, an unknown cost, counts as unsolved. `attempts` is the number of all attempts.
    """
    points: list[tuple[float, float]] = []
    for number, cost in enumerate(sorted(cost for cost in costs if cost is not None), 1):
        if points and points[-1][0] == cost:
            points.pop()
        points.append((cost, number / attempts))
    return points


def _means(values: ByTask) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.fsum(each) / len(each) for each in values.values() if each])
