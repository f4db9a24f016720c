"""Figures of a tree: how deep and how wide it is, how the visits are spread, whether looking ahead changed the judge's mind."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import msgspec

from exact.search.tree import Edge, Node, Tree


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the part of a tree below one state. None where there is nothing to measure."""

    states: int
    """Nodes, the first included; those closed as no-ops, twins or merged ones too."""
    evaluations: int
    proposals: int
    """Actions proposed in all states."""
    unused: float | None
    """Share of the proposals that were never followed, in [0, 1]; closed ones are left out."""
    depth: int
    """Actions from the first state to the deepest."""
    mean_depth: float
    branching: float | None
    """Mean number of proposals of a state that has any."""
    entropy: float | None
    """Entropy of the first state's visits over its actions, over its maximum: 0 all on one action, 1 evenly spread."""
    agreement: float | None
    """Share of pairs of siblings that V of their states and Q of their actions order alike, in [0, 1]; a tie counts half. Over pairs
    of which at least one was looked beyond: elsewhere Q is V."""


def stats(tree: Tree, node: Node | None = None) -> Stats:
    """The figures below a state; by default below the first root, so of the whole search."""
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
    """`-sum p ln p / ln n` of a state's visits over its n actions, in [0, 1]; None with fewer than two actions or without visits."""
    visits = [edge.visits for edge in node.edges]
    total = sum(visits)
    if len(visits) < 2 or not total:
        return None
    return abs(sum(n / total * math.log(n / total) for n in visits if n)) / math.log(len(visits))


def _pairs(node: Node) -> Iterator[float]:
    """For each pair of siblings of which one was looked beyond: 1 where V and Q order them alike, 0.5 for a tie, else 0."""
    judged = [edge for edge in node.edges if edge.visits and edge.child is not None and edge.child.value is not None]
    for one, other in combinations(judged, 2):
        if _looked_beyond(one) or _looked_beyond(other):
            assert one.child is not None and other.child is not None
            by_v = (one.child.value or 0.0) - (other.child.value or 0.0)
            by_q = one.q - other.q
            yield 0.5 if by_v == 0 or by_q == 0 else float((by_v > 0) == (by_q > 0))


def _looked_beyond(edge: Edge) -> bool:
    return edge.child is not None and edge.child.visited


def _share(votes: list[float] | list[bool]) -> float | None:
    return sum(votes) / len(votes) if votes else None
