"""The final choice: which action is committed when a search has ended, and when that can no longer change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from exact.search.rules.first_play import parent_value
from exact.search.tree import Edge, Node, Tree

CLEARLY = 0.1
"""By how much, on the scale of values, an action that could not be searched must promise more to be committed."""


@dataclass(frozen=True)
class FinalChoice:
    """An order of a root's edges, best first, and whether more iterations could change its first."""

    order: Callable[[Tree, Node], list[int]]
    settled: Callable[[Tree, Node, int], bool]
    """From the tree, the node and the iterations left."""
    reason: str


def first_value(node: Node, edge: Edge) -> float:
    """Q of an edge; of an unvisited one the parent's own value (0.5 where it has none)."""
    return edge.q if edge.visits else parent_value(node)


def most_visited(node: Node) -> list[int]:
    """Indices of a node's visited edges, best first: by visits, then Q, then prior, then order (robust child).

    An edge with nothing more to learn below gathers no more visits. It goes first where its Q is above the first's.
    """
    order = _ordered(node, lambda edge: (-edge.visits, -edge.q, -edge.prior))
    if not order or not any(node.edges[i].settled for i in order):
        return order
    lead = node.edges[order[0]].q
    ahead = [i for i in order if node.edges[i].settled and node.edges[i].q > lead]
    ahead.sort(key=lambda i: -node.edges[i].q)
    return ahead + [i for i in order if i not in ahead]


def most_valued(node: Node) -> list[int]:
    """Indices of a node's visited edges, best first: by Q, then prior, then order (max child)."""
    return _ordered(node, lambda edge: (-edge.q, -edge.prior))


def most_promising(node: Node) -> list[int]:
    """Indices of the edges that could not be searched but may be committed, best first: by Q or first-play value, then prior.

    An edge that changes nothing visible may still change the environment; one whose state was not reached by replay may be good.
    """
    unsearched = [i for i, edge in enumerate(node.edges) if edge.unsearched and not edge.futile]
    return sorted(unsearched, key=lambda i: (-first_value(node, node.edges[i]), -node.edges[i].prior, i))


def most_likely(node: Node) -> list[int]:
    """Indices of the edges that may be committed, by prior; those that could not be searched come last."""
    possible = [i for i, edge in enumerate(node.edges) if not edge.futile]
    return sorted(possible, key=lambda i: (bool(node.edges[i].closed), -node.edges[i].prior, i))


def _ordered(node: Node, key: Callable[[Edge], tuple[float, ...]]) -> list[int]:
    visited = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
    return sorted(visited, key=lambda i: key(node.edges[i]))


def _max_robust(tree: Tree, node: Node) -> list[int]:
    """The edge that is first by visits and by Q, where there is one; else by visits."""
    by_visits, by_value = most_visited(node), most_valued(node)
    both = [i for i in by_visits[:1] if i in by_value[:1]]
    return both + [i for i in by_visits if i not in both]


def _lower_bound(z: float, noise: float) -> Callable[[Tree, Node], list[int]]:
    def order(tree: Tree, node: Node) -> list[int]:
        error = z * max(tree.noise, noise)
        return _ordered(node, lambda edge: (-(edge.q - error / math.sqrt(backing(edge))), edge.distance, -edge.visits, -edge.prior))

    return order


def backing(edge: Edge) -> int:
    """How many evaluations stand behind Q: of a settled edge those of one end, however much was tried on the way to it."""
    if not edge.settled:
        return edge.visits
    child = edge.child
    return max(1, child.evaluations) if child is not None and child.leaf else 1


def _outvoted(tree: Tree, node: Node, left: int) -> bool:
    """By visits: the lead is greater than the iterations left, and no edge is judged by its Q instead."""
    possible = [edge for edge in node.edges if not edge.futile]
    if any(edge.settled or edge.unsearched for edge in possible):
        return False
    ranked = sorted(possible, key=lambda edge: -edge.visits)
    return bool(ranked) and all(ranked[0].visits - edge.visits - edge.in_flight > left for edge in ranked[1:])


def _outdone(z: float = 0.0, noise: float = 0.0) -> Callable[[Tree, Node, int], bool]:
    """By values: even if all that is left went to another action and came back 1, or to the first and came back 0."""

    def settled(tree: Tree, node: Node, left: int) -> bool:
        possible = [edge for edge in node.edges if not edge.futile]
        error = z * max(tree.noise, noise)
        if not possible or any(edge.unsearched for edge in possible) or not any(edge.visits for edge in possible):
            return False
        first = max((edge for edge in possible if edge.visits), key=lambda edge: edge.q - error / math.sqrt(edge.visits))
        worst = first.total / (first.visits + left) - error / math.sqrt(first.visits)
        return all(edge is first or worst > _hope(edge, left, error) for edge in possible)

    return settled


def _hope(edge: Edge, left: int, error: float) -> float:
    """The highest lower bound that an edge can reach with the iterations left."""
    if edge.closed:
        return edge.q - error / math.sqrt(edge.visits) if edge.visits else -math.inf
    visits = edge.visits + left
    return (edge.total + left) / visits - error / math.sqrt(visits) if visits else -math.inf


VISITS = FinalChoice(lambda tree, node: most_visited(node), _outvoted, "most visits")
"""Robust child: the most visited."""
VALUE = FinalChoice(lambda tree, node: most_valued(node), _outdone(), "the highest value")
"""Max child: the highest Q."""
MAX_ROBUST = FinalChoice(
    _max_robust, lambda tree, node, left: _outvoted(tree, node, left) and _outdone()(tree, node, left), "most visits and the highest value"
)
"""Max-robust child (Coulom 2007): first by both; where none is, the most visited."""


def lower_bound(z: float = 1.0, noise: float = 0.3) -> FinalChoice:
    """Secure child: the highest `Q - z max(measured, noise) / sqrt(N)`.

    measured: the deviation of one judgement as seen in this tree; noise: the least that is assumed, since values below one action
    differ by more than the judge's error. With many workers visits are spread by what is in flight as well as by Q, so this is the
    default: see bench/search_quality.py and bench/parallel_search.py.
    """
    return FinalChoice(_lower_bound(z, noise), _outdone(z, noise), "the highest lower bound")


LOWER_BOUND = lower_bound()
"""Its default form."""


def principal(tree: Tree, final: FinalChoice, node: Node | None = None) -> list[int]:
    """Return the principal variation: the edge index of each state's final choice, down to the first state without visited edges.

    node: where it begins; by default the root.
    """
    node, edges = node or tree.root, list[int]()
    while not node.leaf:
        order = final.order(tree, node)
        if not order:
            break
        edges.append(order[0])
        child = node.edges[order[0]].child
        if child is None:
            break
        node = child
    return edges
