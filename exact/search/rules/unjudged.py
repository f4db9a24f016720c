"""Decisions where no evaluation could be read: the policy's first choice, as without a search."""

from __future__ import annotations

from exact.search.tree import Node, Tree

UNJUDGED = "the highest prior: no evaluation below could be read"
"""Reason of a decision of this rule."""


def is_unjudged(node: Node) -> bool:
    """Return whether the evaluation of a state could not be read, so that its value is that of the state before."""
    return node.evaluation is not None and node.evaluation.unjudged


def knows_nothing(tree: Tree) -> bool:
    """Return whether states below the root were evaluated and none of the evaluations could be read."""
    evaluated = [node for node in tree.walk() if node is not tree.root and node.evaluation is not None]
    return bool(evaluated) and all(map(is_unjudged, evaluated))
