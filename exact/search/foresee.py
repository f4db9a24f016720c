"""Where a search by a selection rule is likely to step next, while results are still to come. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from exact.search.rules.select import SelectionRule, follow
from exact.search.tree import Node, Tree


def foresee(tree: Tree, rule: SelectionRule, depth: int) -> Iterator[Node]:
    """The states in which actions are being proposed; then the one to which the rule leads now, what is in flight passed over.

    depth: actions below the root at most.
    """
    for work in tree.open.values():
        if "proposals" in work.left or "sample" in work.left:
            yield work.target if work.target is not None else tree.nodes[work.selection.node]
    deepest, node = tree.root.depth + depth, tree.root
    while not (node.leaf or node.closed or node.depth >= deepest):
        index = rule(tree, node) if node.expansions and not node.pending else -1
        child = node.edges[index].child if index >= 0 else None
        if child is None:
            yield node
            return
        node = follow(node.edges[index])
