"""Progressive widening: a state gets more children as it is visited more (Coulom 2007, Chaslot et al. 2008)."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Node

Widening = Callable[[Node], int]
"""How many children a state may have now; at least 1."""


def progressive(scale: float, power: float) -> Widening:
    """`ceil(scale * N ** power)` children at N visits; scale > 0, power in (0, 1]."""
    return lambda node: max(1, math.ceil(scale * max(node.visits, 1) ** power))
