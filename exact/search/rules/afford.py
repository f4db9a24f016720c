"""A budget of money or time as a number of iterations, by what an iteration has cost so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from exact.search.tree import Tree


@runtime_checkable
class Replans(Protocol):
    """An algorithm that spreads its iterations over phases, and plans each anew by what can still be paid for."""

    def replan(self, tree: Tree, left: int | None) -> None:
        """How many more iterations the budget pays for; None: as many as are allowed. Counts from the next phase on."""
        ...


def affordable(spent: Mapping[str, float], remaining: Mapping[str, float | None], iterations: int) -> int | None:
    """How many more iterations the tightest budget pays for, at the mean cost so far: `floor(remaining * iterations / spent)`.

    By kind of budget (money, seconds, calls, ...), in any unit; a kind without `remaining` has no limit. None where nothing limits, or
    nothing was measured: `iterations` is 0, or they cost nothing of what is limited.
    """
    counts = [
        math.floor(max(0.0, left) * iterations / spent[kind] + 1e-9)
        for kind, left in remaining.items()
        if left is not None and iterations > 0 and spent.get(kind, 0.0) > 0
    ]
    return min(counts, default=None)
