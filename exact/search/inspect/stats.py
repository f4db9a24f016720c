"""Statistics of a tree: its depth and width, the spread of visits, and how often the search changed the ranking by value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import msgspec

from exact.search.tree import Edge, Node, Tree


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the subtree below one state. None if there is nothing to measure."""

    states: int
    """Number of nodes, the first and the closed ones included."""
    evaluations: int
    """Number of evaluations."""
    proposals: int
    """Number of actions proposed in all states."""
    unused: float | None
    """Share of the proposals that were never followed, in [0, 1]; closed ones are left out."""
    depth: int
    """Number of actions from the first state to the deepest."""
    mean_depth: float
    """Mean number of actions from the first state."""
    branching: float | None
    """Mean number of proposals of an expanded state."""
    entropy: float | None
    """Normalised entropy of the first state's visits over its actions: 0 all on one action, 1 evenly spread."""
    agreement: float | None
    """Share of sibling pairs that V and Q order alike, in [0, 1]; a tie counts half. Only pairs with a search below at least one of the two
    count: otherwise Q is V."""


def stats(tree: Tree, node: Node | None = None) -> Stats:
    """Return the statistics below a state; by default below the first root, so of the whole search."""
    first = node or tree.nodes[0]
    states = list(tree.walk(first))
    expanded = [state for state in states if state.edges]
    edges = [edge for state in expanded for edge in state.edges]
    return Stats(
        states=len(states),
        evaluations=sum(state.evaluations for state in states),
        proposals=len(edges),
        unused=_share([edge.child is None for edge in edges if edge.child is not None or not edge.closed]),
        depth=max(state.depth for state in states) - first.depth,
        mean_depth=sum(state.depth for state in states) / len(states) - first.depth,
        branching=len(edges) / len(expanded) if expanded else None,
        entropy=entropy(first),
        agreement=_share([alike for state in expanded for alike in _pairs(state)]),
    )


def entropy(node: Node) -> float | None:
    """Return `-sum p ln p / ln n` of a state's visits over its n actions, in [0, 1]; None with fewer than two actions or without visits."""
    visits = [edge.visits for edge in node.edges]
    total = sum(visits)
    if len(visits) < 2 or not total:
        return None
    return abs(sum(n / total * math.log(n / total) for n in visits if n)) / math.log(len(visits))


def _pairs(node: Node) -> Iterator[float]:
    """Yield for each sibling pair with a search below one of the two: 1 if V and Q order them alike, 0.5 for a tie, else 0."""
    evaluated = [edge for edge in node.edges if edge.visits and edge.child is not None and edge.child.value is not None]
    for one, other in combinations(evaluated, 2):
        if _searched_below(one) or _searched_below(other):
            assert one.child is not None and other.child is not None
            by_v = (one.child.value or 0.0) - (other.child.value or 0.0)
            by_q = one.q - other.q
            yield 0.5 if by_v == 0 or by_q == 0 else float((by_v > 0) == (by_q > 0))


def _searched_below(edge: Edge) -> bool:
    """Return whether the search went below an edge."""
    return edge.child is not None and edge.child.visited


def _share(votes: list[float] | list[bool]) -> float | None:
    return sum(votes) / len(votes) if votes else None
