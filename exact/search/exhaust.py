"""When nothing more can be learnt below an action, and when that is over.

A judge proves nothing, but exhaustion does: where every way on has been judged as often as it may be, what a state is worth is what
its best way on is worth, not the mean over all that was tried.
"""

from __future__ import annotations

from exact.search.tree import Edge, Node, Tree


def settle(edge: Edge) -> None:
    """An edge whose states are closed: its Q is now that of the best way on, if nothing below failed. Keeps its counts."""
    if all(_is_known(child) for child in edge.outcomes):
        edge.settled = True
        seen = sum(child.seen for child in edge.outcomes)
        edge.q = sum(child.seen * _best(child) for child in edge.outcomes) / seen
        edge.ahead = 1 + max(_ahead(child) for child in edge.outcomes)


def reopen(tree: Tree) -> None:
    """Open again, below a new root, the edges that were exhausted by the depth limit alone: it has moved down."""
    for node in tree.walk():
        for edge in node.edges:
            if edge.child is not None and edge.closed.startswith("exhausted") and any(not child.leaf for child in edge.outcomes):
                edge.closed, edge.settled = "", False
                edge.q = edge.total / edge.visits if edge.visits else 0.0
                for child in edge.outcomes:
                    child.closed = "" if child.closed.startswith("exhausted") else child.closed


def _is_known(node: Node) -> bool:
    """Whether all that can be done in a state was done, and told."""
    return node.leaf or all(edge.settled or edge.futile or edge.closed.startswith("no-op") for edge in node.edges)


def _best(node: Node) -> float:
    """The value of a state all of whose ways on are known; of one without any, its own."""
    return max((edge.q for edge in node.edges if edge.settled and not edge.futile), default=node.value or 0.0)


def _ahead(node: Node) -> int:
    """How many actions it is from a state to the best end: the nearest of equals."""
    best = _best(node)
    return min((edge.ahead for edge in node.edges if edge.settled and not edge.futile and edge.q == best), default=0)
