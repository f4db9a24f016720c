"""Numbers that change in the course of a search: the exploration constant, and how many children a state gets."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Node

CSchedule = Callable[[float], float]
"""The exploration constant at a share of the search in [0, 1]: 0 before the first iteration, 1 at the last."""

Branching = Callable[[int, int], int]
"""How many children a state gets: from k and its depth below the root; at least 1."""


def fixed(c: float) -> CSchedule:
    """The same all the time."""
    return lambda share: c


def linear(first: float, last: float) -> CSchedule:
    """From `first` to `last` in a straight line."""
    return lambda share: first + (last - first) * share


def exponential(first: float, last: float) -> CSchedule:
    """From `first` to `last` by a constant factor; both above 0."""
    if min(first, last) <= 0:
        raise ValueError(f"an exponential schedule needs both ends above 0, not {first} and {last}")
    return lambda share: first * (last / first) ** share


def cosine(first: float, last: float) -> CSchedule:
    """From `first` to `last` along half a cosine: slow, fast, slow."""
    return lambda share: last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def constant(k: int, depth: int) -> int:
    """k children at every depth."""
    return k


def decaying(factor: float) -> Branching:
    """`k * factor ** depth` children, rounded; `factor` in (0, 1]."""
    return lambda k, depth: max(1, round(k * factor**depth))


Widening = Callable[[Node], int]
"""Number of children that a state may have now; at least 1."""


def progressive(scale: float, power: float) -> Widening:
    """Return progressive widening: `ceil(scale * N ** power)` children at N visits (Coulom 2007, Chaslot et al. 2008).

    scale: above 0. power: in (0, 1].
    """
    return lambda node: max(1, math.ceil(scale * max(node.visits, 1) ** power))
