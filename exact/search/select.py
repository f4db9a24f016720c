"""Selection rules and final choices: which edge to follow, which to commit."""

from __future__ import annotations

import math
from collections.abc import Callable

from exact.search.tree import Edge, Node

SelectionRule = Callable[[Node, Edge], float]
"""Score of an edge at a node; the highest is followed, the first of equals."""


def first_play(node: Node, edge: Edge) -> float:
    """Q of an edge; of an unvisited one the parent's own value (0.5 where it has none)."""
    if edge.value is not None:
        return edge.value
    return node.value if node.value is not None else 0.5


def puct(c: float) -> SelectionRule:
    """`Q(s,a) + c P(s,a) sqrt(N(s)) / (1 + N(s,a))`, as in AlphaZero (Silver et al. 2018), N(s) counting the node's own evaluation.

    Selections in flight add to the counts, not to Q (WU-UCT, Liu et al. 2020). Values in [0, 1]; c >= 0.
    """

    def score(node: Node, edge: Edge) -> float:
        visits = node.visits + node.in_flight
        return first_play(node, edge) + c * edge.prior * math.sqrt(visits) / (1 + edge.visits + edge.in_flight)

    return score


def most_visited(node: Node) -> list[int]:
    """Indices of a node's visited edges, best first: by visits, then Q, then prior, then order (robust child)."""
    return _ordered(node, lambda edge: (-edge.visits, -(edge.value or 0.0), -edge.prior))


def most_valued(node: Node) -> list[int]:
    """Indices of a node's visited edges, best first: by Q, then prior, then order (max child)."""
    return _ordered(node, lambda edge: (-(edge.value or 0.0), -edge.prior))


def _ordered(node: Node, key: Callable[[Edge], tuple[float, ...]]) -> list[int]:
    visited = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
    return sorted(visited, key=lambda i: key(node.edges[i]))


def most_promising(node: Node) -> list[int]:
    """Indices of the edges that could not be searched but may be committed, best first: by Q or first-play value, then prior.

    An edge that changes nothing visible may still change the world; one whose state was not reached by replay may be good.
    """
    unsearched = [i for i, edge in enumerate(node.edges) if edge.unsearched and not edge.futile]
    return sorted(unsearched, key=lambda i: (-first_play(node, node.edges[i]), -node.edges[i].prior, i))


def most_likely(node: Node) -> list[int]:
    """Indices of the edges that may be committed, by prior; those that could not be searched come last."""
    possible = [i for i, edge in enumerate(node.edges) if not edge.futile]
    return sorted(possible, key=lambda i: (bool(node.edges[i].closed), -node.edges[i].prior, i))
