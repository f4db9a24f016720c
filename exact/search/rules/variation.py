"""The principal variation: the path that a search would take, choice by choice."""

from __future__ import annotations

from exact.search.rules.final import FinalChoice
from exact.search.tree import Node, Tree


def principal(tree: Tree, final: FinalChoice, node: Node | None = None) -> list[int]:
    """Indices of the edges from a node (default: the root) along each state's final choice, to where nothing was visited."""
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
