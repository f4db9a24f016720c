"""First-play urgency: the Q of an action that has not been tried."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Node

FirstPlay = Callable[[Node], float]
"""Function that returns the value, in [0, 1], of a state's unvisited edges."""


def parent_value(node: Node) -> float:
    """Return the state's own V, or 0.5 if it has none: an untried action is neither better nor worse than its state."""
    return node.value_sum / node.evaluations if node.evaluations else 0.5


def parent_mean(node: Node) -> float:
    """Return the mean of all values backed up at the state."""
    mean = node.mean
    return 0.5 if mean is None else mean


def zero(node: Node) -> float:
    """Return 0: only priors speak for an untried action, as in OpenSpiel's MCTS."""
    return 0.0


def lowest(node: Node) -> float:
    """Return the minimum of the state's mean and its visited edges' Q, as mctx does for MuZero."""
    return min([parent_mean(node), *(edge.q for edge in node.edges if edge.visits)])


def reduced(by: float) -> FirstPlay:
    """Return `V - by * sqrt(sum of the visited edges' priors)`, at least 0 (first-play reduction: KataGo, Leela)."""

    def value(node: Node) -> float:
        tried = sum(edge.prior for edge in node.edges if edge.visits)
        return max(0.0, parent_value(node) - by * math.sqrt(tried))

    return value
