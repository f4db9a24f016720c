"""How a value travels up, and how a reservation is made and given back along a path."""

from __future__ import annotations

from exact.search.tree import Node, Tree


def back_up(tree: Tree, node: Node, value: float) -> None:
    """Count one evaluation of `node` into it and into every edge and node above: Q stays the running mean."""
    node.visits += 1
    node.backups += 1
    tree.iterations += 1
    while node.parent is not None:
        edge = node.parent.edges[node.via]
        edge.visits += 1
        edge.total += value
        node = node.parent
        node.visits += 1


def reserve(node: Node, by: int) -> None:
    """Add `by` (+1 or -1) to the selections in flight at a node and all above."""
    node.in_flight += by
    while node.parent is not None:
        node.parent.edges[node.via].in_flight += by
        node = node.parent
        node.in_flight += by
