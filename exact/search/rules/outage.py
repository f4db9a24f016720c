"""What closed an action or a state that is no property of it. It is never taken for a choice.

Models and environments that failed for too long: what they closed is open again once the attempt goes on. An agent whose answers could not
be read: its own fault, which stays.
"""

from __future__ import annotations

from exact.search.rules.exhaust import reopen
from exact.search.tree import Node, Tree
from exact.search.work import Work

KINDS = ("model", "environment")
"""First words of why something was closed, where the infrastructure failed."""
ANSWER = "answer"
"""That word where an answer could not be read."""


def outage(root: Node) -> str:
    """Why nothing is known of any action of a root, where the infrastructure is to blame: as it was closed, with the kind in front.

    Empty where something is known, or there is another reason. An action that changes nothing tells nothing.
    """
    return next((closed for closed in _closed_by_failure(root) if _kind(closed) in KINDS), "")


def unreadable(root: Node) -> str:
    """Why nothing is known of any action of a root, where nothing but answers that could not be read is to blame: the last words of one."""
    broken = _closed_by_failure(root)
    return broken[0].partition(": ")[2] if broken and not outage(root) else ""


def _closed_by_failure(root: Node) -> list[str]:
    """Why the root, or all that was tried there, was closed, where that is no property of it and nothing is known; else nothing."""
    tried = [edge for edge in root.edges if not edge.futile and not edge.closed.startswith("no-op")]
    if any(edge.visits for edge in tried):
        return []
    closed = [root.closed] if _is_broken(root.closed) else [edge.closed for edge in tried]
    return closed if all(map(_is_broken, closed)) else []


def reopen_outages(algorithm: Work, tree: Tree) -> None:
    """Open what failures closed below the root, and what was exhausted for want of it; allow the iterations that they took once more."""
    below = {node.id for node in tree.walk()}
    for broken in tree.outages:
        if broken.at.id in below:
            tree.allowed += broken.charged
            for closed in (broken.node, broken.edge):
                if closed is not None and closed.closed == broken.reason:
                    closed.closed, closed.failures = "", 0
            if broken.edge is not None and not broken.edge.closed:
                broken.edge.unsearched = False
    tree.outages.clear()
    tree.resting = None
    reopen(tree, algorithm.backup, deeper=False)


def _kind(closed: str) -> str:
    return closed.partition(":")[0]


def _is_broken(closed: str) -> bool:
    return _kind(closed) in (*KINDS, ANSWER)
