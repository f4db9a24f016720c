"""Actions and states that were closed for reasons outside them. Such a closing never decides a choice.

Repeated failures of models and environments: their closings are reopened when the attempt resumes. Unreadable answers are the agent's own
fault and stay closed.
"""

from __future__ import annotations

from exact.search.rules.exhaust import reopen
from exact.search.rules.final import knows_nothing
from exact.search.tree import Tree, is_noop
from exact.search.work import Work

KINDS = ("model", "environment")
"""First words of the reason of a closing by an infrastructure failure."""
ANSWER = "answer"
"""First word of the reason of a closing by an unreadable answer."""


def outage(tree: Tree) -> str:
    """Return the reason of a closing, kind first, if nothing is known of any action of the root because of the infrastructure.

    Empty if something is known, or if there is another reason. An action that changes nothing gives no knowledge, and neither do states
    whose evaluations could not be read.
    """
    return next((closed for closed in _closed_by_failure(tree) if _kind(closed) in KINDS), "")


def unreadable(tree: Tree) -> str:
    """Return the error of an unreadable answer, if nothing is known of any action of the root because of such answers alone.

    Also empty if a proposed action may be committed all the same: it was not tried, or it changed nothing that can be seen.
    """
    if any(not edge.futile and (not edge.closed or is_noop(edge)) for edge in tree.root.edges):
        return ""
    broken = _closed_by_failure(tree)
    return broken[0].partition(": ")[2] if broken and not outage(tree) else ""


def _closed_by_failure(tree: Tree) -> list[str]:
    """Return the reasons why the root, or all its tried actions, were closed, if none is a property of the actions and nothing is known."""
    tried = [edge for edge in tree.root.edges if not edge.futile and not is_noop(edge)]
    if any(edge.visits for edge in tried) and not knows_nothing(tree):
        return []
    closed = [tree.root.closed] if _is_broken(tree.root.closed) else [edge.closed for edge in tried if not edge.visits]
    return closed if all(map(_is_broken, closed)) else []


def reopen_outages(algorithm: Work, tree: Tree) -> None:
    """Reopen the states that failures closed or exhausted below the root, and grant the iterations that they took again."""
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
    """Return the first word of a reason."""
    return closed.partition(":")[0]


def _is_broken(closed: str) -> bool:
    """Return whether a reason is a failure of the infrastructure or of an answer."""
    return _kind(closed) in (*KINDS, ANSWER)
