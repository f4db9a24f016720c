"""Exhaustion: when nothing is left to learn below an action, and when that ends.

An evaluation proves nothing, but exhaustion does. If every action below a state was evaluated as often as allowed, the state is worth its
best action, not the mean over all that was tried.
"""

from __future__ import annotations

import re

from exact.search.rules.backup import Backup
from exact.search.rules.final import is_unjudged
from exact.search.tree import Edge, Node, Tree, is_noop, touched


def is_exhausted(edge: Edge, *, evaluations: int, deepest: int) -> bool:
    """Return whether nothing is left to learn in any outcome of an edge.

    Each outcome is closed, or it is a leaf that was evaluated `evaluations` times. deepest: depth at which states are leaves.
    """
    return all(child.closed or (_ends(child, deepest) and child.evaluations >= evaluations) for child in edge.outcomes)


def settle(edge: Edge, *, discount: float, deepest: int) -> None:
    """Set Q of an exhausted edge to `discount` times the value of its best continuation, if nothing below failed. Counts stay."""
    if all(_is_known(child, deepest) for child in edge.outcomes):
        edge.settled = True
        seen = sum(child.arrivals for child in edge.outcomes)
        edge.q = discount * sum(child.arrivals * _best(child) for child in edge.outcomes) / seen
        edge.distance = 1 + max(_ahead(child) for child in edge.outcomes)


def exhausted_value(node: Node) -> float:
    """Return the value of an evaluated and exhausted state: its best action, or the mean over all if some of that is unknown."""
    value = _best(node) if _is_told(node) else node.mean
    assert value is not None
    return value


def reopen(tree: Tree, rule: Backup, *, deeper: bool) -> None:
    """Reopen the exhausted edges that have an open action below, and recompute their Q by the rule. Permanently exhausted ones stay.

    deeper: whether to reopen also those that only the depth limit had stopped, because the root has moved down.
    """

    def goes_on(node: Node) -> bool:
        return any(not edge.closed for edge in node.edges) or (deeper and not node.leaf and not node.expansions)

    for node in sorted(tree.walk(), key=lambda node: -node.depth):  # deeper nodes come first
        for edge in touched(node):
            if edge.closed.startswith("exhausted") and any(map(goes_on, edge.outcomes)):
                edge.closed, edge.settled, edge.distance = "", False, 0
                edge.q = rule(edge, max(edge.outcomes, key=lambda child: child.arrivals)) if edge.visits else 0.0
        if node.closed.startswith("exhausted") and goes_on(node):
            node.closed = ""


def expect_chance(tree: Tree, rule: Backup) -> None:
    """Take the environment for stochastic from now on: what was closed because one outcome seemed to be the only one is open again."""
    if tree.stochastic:
        return
    tree.stochastic, tree.resting = True, None
    for node in sorted(tree.walk(), key=lambda node: -node.depth):
        if node.closed.startswith(_PROVEN):
            node.closed, node.failures = "", 0
        for edge in touched(node):
            if (twin := _TWIN.match(edge.closed)) is not None:
                other = node.edges[int(twin[1])]
                edge.closed, edge.futile, edge.prior, other.prior = "", False, other.prior / 2, other.prior / 2
                if edge.child is not None:
                    edge.child.closed = ""
            if edge.closed.startswith(_PROVEN):
                edge.closed, edge.settled, edge.distance, edge.failures, edge.unsearched = "", False, 0, 0, False
                edge.q = rule(edge, max(edge.outcomes, key=lambda child: child.arrivals)) if edge.visits else 0.0


_TWIN = re.compile(r"twin: lands where action (\d+) lands")
_PROVEN = ("exhausted", "drifted")
"""Beginnings of the reasons that hold only if equal actions lead to equal states."""


def _ends(node: Node, deepest: int) -> bool:
    """Return whether nothing follows a state."""
    return node.leaf or node.depth >= deepest


def _is_known(node: Node, deepest: int) -> bool:
    """Return whether every action of a state was tried and its value is known."""
    return (
        node.value is not None
        and not node.unseen
        and not is_unjudged(node)
        and (node.expansions > 0 or _ends(node, deepest))
        and _is_told(node)
    )


def _is_told(node: Node) -> bool:
    """Return whether the result of every action of a state is known."""
    return all(edge.settled or edge.futile or is_noop(edge) for edge in node.edges)


def settled_value(node: Node) -> float | None:
    """Return the value of a state whose every continuation is known to its end; None if some are not."""
    return _best(node) if node.value is not None and node.edges and _is_told(node) else None


def _best(node: Node) -> float:
    """Return the value of a state whose every action is known; its own value if no action is settled."""
    assert node.value is not None
    return max((edge.q for edge in node.edges if edge.settled and not edge.futile), default=node.value)


def _ahead(node: Node) -> int:
    """Return the number of actions from a state to its best end, the nearest of equals."""
    best = _best(node)
    return min((edge.distance for edge in node.edges if edge.settled and not edge.futile and edge.q == best), default=0)
