"""Q of an action that has not been tried (first-play urgency)."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Node

FirstPlay = Callable[[Node], float]
"""The value, in [0, 1], that a state's unvisited edges count with."""


def parent_value(node: Node) -> float:
    """The state's own V, 0.5 where it has none: an action is thought neither better nor worse than where it starts."""
    return node.value_sum / node.evaluations if node.evaluations else 0.5


def parent_mean(node: Node) -> float:
    """The mean of all that was backed up at the state: it follows what was found below."""
    mean = node.mean
    return 0.5 if mean is None else mean


def zero(node: Node) -> float:
    """0: only priors speak for an untried action, as in OpenSpiel's MCTS."""
    return 0.0


def lowest(node: Node) -> float:
    """The lowest of the state's mean and its visited edges' Q: mctx completes Q so for MuZero."""
    return min([parent_mean(node), *(edge.q for edge in node.edges if edge.visits)])


def reduced(by: float) -> FirstPlay:
    """`V - by * sqrt(sum of the visited edges' priors)`: the more was tried, the less is left to hope for (KataGo, Leela)."""

    def value(node: Node) -> float:
        tried = sum(edge.prior for edge in node.edges if edge.visits)
        return max(0.0, parent_value(node) - by * math.sqrt(tried))

    return value
