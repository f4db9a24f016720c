"""What models and worlds that failed for too long have closed: it is never taken for a choice, and open again once the attempt goes on."""

from __future__ import annotations

from exact.search.exhaust import reopen
from exact.search.tree import Node, Tree
from exact.search.work import Work

KINDS = ("model", "environment")
"""First words of why something was closed, where the infrastructure failed."""


def outage(root: Node) -> str:
    """Why nothing is known of any action of a root, where the infrastructure is to blame: as it was closed, with the kind in front.

    Empty where something is known, or there is another reason. An action that changes nothing tells nothing.
    """
    tried = [edge for edge in root.edges if not edge.futile and not edge.closed.startswith("no-op")]
    if any(edge.visits for edge in tried):
        return ""
    if _is_broken(root.closed):
        return root.closed
    return tried[0].closed if tried and all(_is_broken(edge.closed) for edge in tried) else ""


def mend(algorithm: Work, tree: Tree) -> None:
    """Open what failures closed below the root, and what was exhausted for want of it; allow the iterations that they took once more."""
    below = {node.id for node in tree.walk()}
    for broken in tree.broken:
        if broken.at.id in below:
            tree.allowed += broken.charged
            for closed in (broken.node, broken.edge):
                if closed is not None and closed.closed == broken.reason:
                    closed.closed, closed.failures = "", 0
            if broken.edge is not None and not broken.edge.closed:
                broken.edge.unsearched = False
    tree.broken.clear()
    tree.resting = None
    reopen(tree, algorithm.backup, deeper=False)


def _is_broken(closed: str) -> bool:
    return closed.partition(":")[0] in KINDS
