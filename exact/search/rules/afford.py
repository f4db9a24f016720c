"""Conversion of a budget of money or time into a number of iterations, by the mean cost of an iteration so far."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from exact.search.tree import Tree


@runtime_checkable
class Replans(Protocol):
    """An algorithm that spreads its iterations over phases and plans each anew from the remaining budget."""

    def replan(self, tree: Tree, left: int | None) -> None:
        """Set the number of further iterations that the budget pays for; None: all that are allowed. It counts from the next phase on."""
        ...


def affordable(spent: Mapping[str, float], remaining: Mapping[str, float | None], iterations: int) -> int | None:
    """Return the number of further iterations that the tightest budget pays for: `floor(remaining * iterations / spent)`.

    Both mappings are keyed by kind of budget (money, seconds, calls, ...), in any unit. A kind without `remaining` has no limit. None if no
    budget is limited, or if nothing was measured: `iterations` is 0, or the iterations used no limited budget.
    """
    counts = [
        math.floor(max(0.0, left) * iterations / spent[kind] + 1e-9)
        for kind, left in remaining.items()
        if left is not None and iterations > 0 and spent.get(kind, 0.0) > 0
    ]
    return min(counts, default=None)
