"""Actions whose effect was not seen, beside those that were searched.

A write is blocked while exploring, and some states cannot be reached again. What such an action leads to is judged by the state before it
and the action, and exploring never refutes that judgement. So it gets no visits beyond its evaluations, it never counts as the end of a
search, and it is committed only by these rules, the first that applies. An action that a failure closed before it was evaluated is worth
the state before it.

1. It promises more than the best searched action and than the state before it, by more than `CLEARLY`: it is committed.
2. The best searched action is worth more: that one is committed.
3. Otherwise the one with the higher `ln P + V / CLEARLY` is committed, as in an improved policy (Danihelka et al. 2022). V of the searched
   action is the better of its Q and of the value of the state it led to, since exploring lowers most means.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from exact.search.rules.final import CLEARLY, first_value
from exact.search.rules.first_play import parent_value
from exact.search.tree import Edge, Node, is_noop

UNSEEN = "the best beside actions whose effect was not seen"
"""Reason of a decision that these rules changed."""
_LEAST_PRIOR = 1e-6


class Candidate(NamedTuple):
    """An action at the time of a decision."""

    value: float
    """What it is worth, in [0, 1]: Q or a score."""
    first: float
    """Value of the state it led to, by itself; in [0, 1]."""
    prior: float


def is_unseen(edge: Edge) -> bool:
    """Return whether no outcome of a tried action was seen."""
    return edge.child is not None and all(node.unseen for node in edge.outcomes)


def is_failed(edge: Edge) -> bool:
    """Return whether a failure closed an edge before it had a value. That says nothing about the action."""
    return edge.unsearched and not edge.visits and not edge.futile and not is_noop(edge)


def prefers_unseen(unseen: Candidate, searched: Candidate, *, before: float) -> bool:
    """Return whether an unseen action is committed rather than the best searched one.

    `before`: value, in [0, 1], of the state before the unseen one.
    """
    if unseen.value > max(searched.value, searched.first, before) + CLEARLY:
        return True
    if searched.value > unseen.value:
        return False
    return _improved(unseen.value, unseen.prior) > _improved(max(searched.value, searched.first), searched.prior)


def _improved(value: float, prior: float) -> float:
    return math.log(max(prior, _LEAST_PRIOR)) + value / CLEARLY


def rank_unseen(node: Node, order: list[int]) -> list[int]:
    """Return an order of a node's edges, best first, with the best unseen action moved to where the module's rules want it.

    Actions that failures closed are added to the order. An empty order stays empty.
    """
    edges, failed = node.edges, [i for i, edge in enumerate(node.edges) if is_failed(edge)]
    unseen, searched = [i for i in order if is_unseen(edges[i])], [i for i in order if not is_unseen(edges[i])]
    if not order or not (unseen or failed):
        return order
    worth = {i: _candidate(node, edges[i]) for i in (*unseen, *failed, *searched)}
    unseen = sorted((*unseen, *failed), key=lambda i: (-worth[i].value, -worth[i].prior, i))
    if not searched:
        return unseen
    wins = prefers_unseen(worth[unseen[0]], worth[searched[0]], before=parent_value(node))
    return [*unseen[:1], *searched, *unseen[1:]] if wins else [*searched, *unseen]


def likeliest_failed(node: Node) -> int | None:
    """Return the index of the likeliest action that a failure closed; None if there is none."""
    failed = [i for i, edge in enumerate(node.edges) if is_failed(edge)]
    return max(failed, key=lambda i: (node.edges[i].prior, -i), default=None)


def _candidate(node: Node, edge: Edge) -> Candidate:
    value = first_value(node, edge)
    child = edge.child.value if edge.child is not None else None
    return Candidate(value, value if child is None else child, edge.prior)
