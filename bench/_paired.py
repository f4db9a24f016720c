"""Scores of attempts by rows of agents, and the paired gains of one row over another."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
import numpy as np

from exact.evaluation.statistics import Estimate, bootstrap


class Attempt(msgspec.Struct, frozen=True):
    """The record of one attempt."""

    row: str
    task: str
    score: float | None
    raw: float | None
    actions: int
    transitions: int
    evaluations: int
    seconds: float


class RowRecord(Protocol):
    """A record of an attempt by a row."""

    @property
    def row(self) -> str: ...
    @property
    def task(self) -> str: ...


Record = TypeVar("Record", bound=RowRecord)
Scores = dict[str, dict[str, float]]
"""Scores by row and id."""


def scores(records: Sequence[Record], reading: Callable[[Record], float | None]) -> Scores:
    found: Scores = {}
    for each in records:
        if (value := reading(each)) is not None:
            found.setdefault(each.row, {})[each.task] = value
    return found


def said(found: Estimate) -> str:
    """Return an estimate with two digits; empty if it is of no task."""
    return f"{found.mean:.2f} [{found.low:.2f}, {found.high:.2f}]" if found.tasks else ""


def grouped(values: Mapping[str, float], names: Sequence[str]) -> dict[str, list[float]]:
    kept: dict[str, list[float]] = {}
    for id, value in values.items():
        if (name := id.partition("?")[0]) in names:
            kept.setdefault(name, []).append(value)
    return kept


def gain(found: Scores, row: str, base: str, names: Sequence[str]) -> Estimate:
    """Return the paired gain of one row over another, on the ids that both attempted."""
    if row not in found or base not in found:
        return Estimate(math.nan, math.nan, math.nan, 0)
    both = {id: found[row][id] - found[base][id] for id in found[row] if id in found[base]}
    return bootstrap(grouped(both, names))


def kept(found: Scores, row: str, base: str, search: str, names: Sequence[str], draws: int = 10_000) -> tuple[float, float, float]:
    """Return (row - base) / (search - base) on the ids that all three attempted, with its interval, bootstrapped over tasks."""
    ids = [id for id in found[search] if id.partition("?")[0] in names and id in found[row] and id in found[base]]
    gains = [grouped({id: found[each][id] - found[base][id] for id in ids}, names) for each in (row, search)]
    top, bottom = (np.array([np.mean(of) for of in each.values()]) for each in gains)
    drawn = np.random.default_rng(0).integers(0, len(top), (draws, len(top)))
    below = bottom[drawn].mean(axis=1)
    ratios = top[drawn].mean(axis=1)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    return float(top.mean() / bottom.mean()), float(low), float(high)
