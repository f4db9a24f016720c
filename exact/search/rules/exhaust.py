"""When nothing more can be learnt below an action, and when that is over.

A judge proves nothing, but exhaustion does: where every way on has been judged as often as it may be, what a state is worth is what
its best way on is worth, not the mean over all that was tried.
"""

from __future__ import annotations

from exact.search.rules.backup import Backup
from exact.search.tree import Edge, Node, Tree


def is_exhausted(edge: Edge, *, evaluations: int, deepest: int) -> bool:
    """Whether in no outcome of an edge anything is left to learn: closed, or nothing follows and it was judged as often as it may be.

    evaluations: how often that is. deepest: the depth at which nothing follows.
    """
    return all(child.closed or (_ends(child, deepest) and child.evaluations >= evaluations) for child in edge.outcomes)


def settle(edge: Edge, *, discount: float, deepest: int) -> None:
    """An edge that is over: its Q is now that of the best way on, `discount` times, if nothing below failed. Keeps its counts."""
    if all(_is_known(child, deepest) for child in edge.outcomes):
        edge.settled = True
        seen = sum(child.arrivals for child in edge.outcomes)
        edge.q = discount * sum(child.arrivals * _best(child) for child in edge.outcomes) / seen
        edge.distance = 1 + max(_ahead(child) for child in edge.outcomes)


def exhausted_value(node: Node) -> float:
    """What a judged state in which all was tried is worth: its best way on; the mean over all, where some of that is not known."""
    value = _best(node) if _is_told(node) else node.mean
    assert value is not None
    return value


def reopen(tree: Tree, rule: Backup, *, deeper: bool) -> None:
    """Open again the exhausted edges below which an action is open. Their Q is by the rule again. What was exhausted for good stays so.

    deeper: also those below which the depth limit alone left a state as it was: the root has moved down.
    """

    def goes_on(node: Node) -> bool:
        return any(not edge.closed for edge in node.edges) or (deeper and not node.leaf and not node.expansions)

    for node in sorted(tree.walk(), key=lambda node: -node.depth):  # what lies below comes first
        for edge in node.edges:
            if edge.closed.startswith("exhausted") and any(map(goes_on, edge.outcomes)):
                edge.closed, edge.settled, edge.distance = "", False, 0
                edge.q = rule(edge, max(edge.outcomes, key=lambda child: child.arrivals)) if edge.visits else 0.0
        if node.closed.startswith("exhausted") and goes_on(node):
            node.closed = ""


def _ends(node: Node, deepest: int) -> bool:
    return node.leaf or node.depth >= deepest


def _is_known(node: Node, deepest: int) -> bool:
    """Whether all that can be done in a state was done, and told."""
    return node.value is not None and (node.expansions > 0 or _ends(node, deepest)) and _is_told(node)


def _is_told(node: Node) -> bool:
    """Whether what came of every action of a state is known."""
    return all(edge.settled or edge.futile or edge.closed.startswith("no-op") for edge in node.edges)


def settled_value(node: Node) -> float | None:
    """The value of a state all of whose ways on are known to their ends; None where they are not."""
    return _best(node) if node.value is not None and node.edges and _is_told(node) else None


def _best(node: Node) -> float:
    """The value of a state all of whose ways on are known; of one without any, its own."""
    assert node.value is not None
    return max((edge.q for edge in node.edges if edge.settled and not edge.futile), default=node.value)


def _ahead(node: Node) -> int:
    """How many actions it is from a state to the best end: the nearest of equals."""
    best = _best(node)
    return min((edge.distance for edge in node.edges if edge.settled and not edge.futile and edge.q == best), default=0)
