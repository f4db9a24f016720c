"""Quantities that change during a search: the exploration constant, and the number of children of a state."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Node

CSchedule = Callable[[float], float]
"""Function that returns the exploration constant at a progress in [0, 1]: 0 at the first iteration, 1 at the last."""

Branching = Callable[[int, int], int]
"""Function that returns the number of children of a state, at least 1, from k and the state's depth below the root."""


def fixed(c: float) -> CSchedule:
    """Return a constant schedule."""
    return lambda share: c


def linear(first: float, last: float) -> CSchedule:
    """Return a linear schedule from `first` to `last`."""
    return lambda share: first + (last - first) * share


def exponential(first: float, last: float) -> CSchedule:
    """Return a geometric schedule from `first` to `last`. Raises ValueError unless both are above 0."""
    if min(first, last) <= 0:
        raise ValueError(f"an exponential schedule needs both ends above 0, not {first} and {last}")
    return lambda share: first * (last / first) ** share


def cosine(first: float, last: float) -> CSchedule:
    """Return a schedule from `first` to `last` along half a cosine: slow, fast, slow."""
    return lambda share: last + (first - last) * (1 + math.cos(math.pi * share)) / 2


def constant(k: int, depth: int) -> int:
    """Return k at every depth."""
    return k


def decaying(factor: float) -> Branching:
    """Return `k * factor ** depth` children, rounded, at least 1. factor: in (0, 1]."""
    return lambda k, depth: max(1, round(k * factor**depth))


Widening = Callable[[Node], int]
"""Function that returns the number of children a state may have now; at least 1."""


def progressive(scale: float, power: float) -> Widening:
    """Return progressive widening: `ceil(scale * N ** power)` children at N visits (Coulom 2007, Chaslot et al. 2008).

    scale: above 0. power: in (0, 1].
    """
    return lambda node: max(1, math.ceil(scale * max(node.visits, 1) ** power))
