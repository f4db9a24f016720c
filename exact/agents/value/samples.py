"""From single opinions to an evaluation: orders are averaged out, and disagreement is split by where it comes from."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NamedTuple, Protocol

from exact.context import Argument, Evaluation

Order = Literal["for first", "against first", ""]


class ValueSample(NamedTuple):
    """One sample of one judge."""

    value: float
    reasoning: str = ""
    judge: int = 0
    order: Order = ""
    """Which argument it read first; empty without a debate."""


class SamplingLimits(Protocol):
    """When more opinions are drawn: what of `ValueConfig` says so."""

    @property
    def samples(self) -> int: ...
    @property
    def threshold(self) -> float: ...
    @property
    def most(self) -> int: ...


async def sample_until_precise(draw: Callable[[int, int], Awaitable[Sequence[ValueSample]]], doubt: SamplingLimits) -> list[ValueSample]:
    """Opinions, `doubt.samples` at first; while the standard error of their mean is above `threshold`, as many again, up to `most`.

    draw: from the round, from 0, and how many to draw of each judge in each order. A single opinion says nothing about its error, and buys
    none.
    """
    opinions, drawn = list[ValueSample](), 0
    for number in itertools.count():
        count = doubt.samples if not number else min(doubt.samples, doubt.most - drawn)
        opinions += await draw(number, count)
        drawn += count
        if drawn >= doubt.most or len(opinions) == 1 or standard_error(opinions) <= doubt.threshold:
            return opinions
    raise AssertionError("the loop ends by its bound")


def aggregate(opinions: Sequence[ValueSample], arguments: tuple[Argument, ...] = (), judges: tuple[str, ...] = ()) -> Evaluation:
    """The mean over judges of the mean over orders of the mean over samples, so that no judge and no order counts for more.

    The rationale is that of the opinion nearest to the value (the first of equals). `opinions` is not empty.
    """
    values = tuple(one.value for one in opinions)
    means = [_mean_over_orders([one for one in opinions if one.judge == judge]) for judge in sorted({one.judge for one in opinions})]
    value = min(1.0, max(0.0, statistics.fmean(means)))
    nearest = min(opinions, key=lambda one: abs(one.value - value))
    return Evaluation(
        value=value,
        rationale=nearest.reasoning,
        samples=values,
        disagreement=statistics.pstdev(values),
        order_effect=order_effect(opinions),
        within=_within(opinions),
        between=statistics.pstdev(means),
        arguments=arguments,
        judges=judges,
    )


def order_effect(opinions: Sequence[ValueSample]) -> float:
    """Mean over the judges that read both orders; 0 where none did."""
    effects = []
    for judge in {one.judge for one in opinions}:
        first = [one.value for one in opinions if one.judge == judge and one.order == "for first"]
        last = [one.value for one in opinions if one.judge == judge and one.order == "against first"]
        if first and last:
            effects.append(statistics.fmean(first) - statistics.fmean(last))
    return statistics.fmean(effects) if effects else 0.0


def standard_error(opinions: Sequence[ValueSample]) -> float:
    """Of the value, by the spread within judges and orders; infinite for less than two opinions in every cell."""
    cells = [cell for cell in _cells(opinions) if len(cell) > 1]
    if not cells:
        return float("inf")
    return _within(opinions) / math.sqrt(len(opinions))


def _mean_over_orders(opinions: Sequence[ValueSample]) -> float:
    return statistics.fmean(statistics.fmean(cell) for cell in _cells(opinions))


def _within(opinions: Sequence[ValueSample]) -> float:
    """Pooled over cells, each with its sum of squares: a cell of one opinion says nothing."""
    cells = [cell for cell in _cells(opinions) if len(cell) > 1]
    free = sum(len(cell) - 1 for cell in cells)
    squares = sum((value - statistics.fmean(cell)) ** 2 for cell in cells for value in cell)
    return min(0.5, math.sqrt(squares / free)) if free else 0.0


def _cells(opinions: Sequence[ValueSample]) -> list[list[float]]:
    """Values by judge and order."""
    cells: dict[tuple[int, str], list[float]] = {}
    for one in opinions:
        cells.setdefault((one.judge, one.order), []).append(one.value)
    return list(cells.values())
