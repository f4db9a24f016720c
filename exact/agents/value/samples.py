"""From samples to an evaluation: averages over orders of presentation, and the sources of disagreement.

Grade scales: the number for each letter, and the transform from the scale's own range to [0, 1].
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol

from exact.context import Argument, Evaluation
from exact.errors import unknown

Order = Literal["for first", "against first", ""]


class ValueSample(NamedTuple):
    """One sample of one judge."""

    value: float
    reasoning: str = ""
    judge: int = 0
    order: Order = ""
    """Side whose argument the judge read first. Empty without a debate."""
    exact: bool = False
    """Whether another sample would say the same: it was read from probabilities and not drawn."""
    unread: int = 0
    """Number of further samples of the same question that could not be read."""


UNREAD = 1 / 12
"""Variance of a sample that could not be read: it might have been any value in [0, 1]."""


def counted(samples: Sequence[ValueSample], drawn: int) -> list[ValueSample]:
    """Return the samples of one question of which `drawn` were drawn. The first one has the number of those that could not be read."""
    first, *others = samples
    return [first._replace(unread=max(0, drawn - len(samples))), *others]


class SamplingLimits(Protocol):
    """The settings of `ValueConfig` that decide when more samples are drawn."""

    @property
    def samples(self) -> int: ...
    @property
    def threshold(self) -> float: ...
    @property
    def most(self) -> int: ...


async def sample_until_precise(draw: Callable[[int, int], Awaitable[Sequence[ValueSample]]], limits: SamplingLimits) -> list[ValueSample]:
    """Return samples: `limits.samples` at first, and as many again while their mean is imprecise, up to `limits.most`.

    The mean is imprecise while its standard error exceeds `limits.threshold`. `draw(round, count)` draws `count` samples of each judge in
    each order; rounds count from 0. A single sample gives no estimate of its error and triggers no further samples; nor do exact ones.
    """
    samples, drawn = list[ValueSample](), 0
    for number in itertools.count():
        count = limits.samples if not number else min(limits.samples, limits.most - drawn)
        samples += await draw(number, count)
        drawn += count
        alone = len(samples) == 1 and not samples[0].unread
        if drawn >= limits.most or alone or all(one.exact for one in samples) or standard_error(samples) <= limits.threshold:
            return samples
    raise AssertionError("the loop ends by its bound")


def aggregate(samples: Sequence[ValueSample], arguments: tuple[Argument, ...] = (), judges: tuple[str, ...] = ()) -> Evaluation:
    """Return the mean over judges of the mean over orders of the mean over samples. Every judge and every order has equal weight.

    Samples that could not be read do not move the value, and add to its spread. The rationale is that of the sample nearest to the value,
    the first of equals. `samples` is not empty.
    """
    unread = sum(one.unread for one in samples)
    values = tuple(one.value for one in samples)
    means = [_mean_over_orders([one for one in samples if one.judge == judge]) for judge in sorted({one.judge for one in samples})]
    value = min(1.0, max(0.0, statistics.fmean(means)))
    nearest = min(samples, key=lambda one: abs(one.value - value))
    return Evaluation(
        value=value,
        rationale=nearest.reasoning,
        samples=values,
        disagreement=math.sqrt((statistics.pvariance(values) * len(values) + unread * UNREAD) / (len(values) + unread)),
        order_effect=order_effect(samples),
        within=_within(samples),
        between=statistics.pstdev(means),
        arguments=arguments,
        judges=judges,
    )


def order_effect(samples: Sequence[ValueSample]) -> float:
    """Return the mean order effect of the judges that read both orders, in [-1, 1]. 0 if there is no such judge."""
    effects = []
    for judge in {one.judge for one in samples}:
        first = [one.value for one in samples if one.judge == judge and one.order == "for first"]
        last = [one.value for one in samples if one.judge == judge and one.order == "against first"]
        if first and last:
            effects.append(statistics.fmean(first) - statistics.fmean(last))
    return statistics.fmean(effects) if effects else 0.0


def standard_error(samples: Sequence[ValueSample]) -> float:
    """Return the standard error of the value, from the spread within each judge and order.

    Infinite if no judge has two samples in the same order and all were read.
    """
    cells = [cell for cell in _cells(samples) if len(cell) > 1]
    if not cells and not any(one.unread for one in samples):
        return float("inf")
    return _within(samples) / math.sqrt(len(samples))


def _mean_over_orders(samples: Sequence[ValueSample]) -> float:
    return statistics.fmean(statistics.fmean(cell) for cell in _cells(samples))


def _within(samples: Sequence[ValueSample]) -> float:
    """Return the standard deviation within cells, pooled by sum of squares. A cell of one sample contributes nothing.

    A sample that could not be read contributes UNREAD.
    """
    cells = [cell for cell in _cells(samples) if len(cell) > 1]
    unread = sum(one.unread for one in samples)
    free = sum(len(cell) - 1 for cell in cells) + unread
    squares = sum((value - statistics.fmean(cell)) ** 2 for cell in cells for value in cell) + unread * UNREAD
    return min(0.5, math.sqrt(squares / free)) if free else 0.0


def _cells(samples: Sequence[ValueSample]) -> list[list[float]]:
    """Return the values grouped by judge and order."""
    cells: dict[tuple[int, str], list[float]] = {}
    for one in samples:
        cells.setdefault((one.judge, one.order), []).append(one.value)
    return list(cells.values())


class GradeScale(NamedTuple):
    """A number for each letter, and the range of those numbers."""

    letters: Mapping[str, float]
    """Numbers on the scale's own range, best first."""
    low: float = 0.0
    high: float = 1.0
    source: str = ""

    def value(self, letter: str) -> float:
        """Return the value of a letter in [0, 1]: (x - low) / (high - low).

        Raises KeyError for a letter outside the scale.
        """
        return (self.letters[letter] - self.low) / (self.high - self.low)


def _scale(best: str, *, low: float = 0.0, source: str) -> GradeScale:
    numbers = (float(number) for number in best.split())
    return GradeScale(MappingProxyType(dict(zip("ABCDE", numbers, strict=True))), low=low, source=source)


SCALES: Mapping[str, GradeScale] = MappingProxyType(
    {
        "even": _scale("1 0.8 0.5 0.2 0", source="exact's own"),
        "web": _scale("1 0.9 0.5 0.2 0", source="ExACT on VisualWebArena: direct, rubric and debate"),
        "desktop": _scale("1 0.5 0.2 -0.2 -1", low=-1.0, source="ExACT on OSWorld: direct and single debate"),
        "reinforced": _scale("1 0.7 0.5 -0.2 -1", low=-1.0, source="ExACT on VisualWebArena: debate with reflections"),
    }
)
"""Presets by name. All use the letters A to E with the meanings in the prompts."""


def grade_scale(name: str) -> GradeScale:
    """Return a preset scale.

    Raises UsageError for an unknown name.
    """
    if name not in SCALES:
        raise unknown("scale of grades", name, SCALES)
    return SCALES[name]
