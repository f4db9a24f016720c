"""Best-first search over a value-ordered frontier (Koh et al. 2024, "Tree Search for Language Model Agents").

The frontier holds proposed and untried actions. The value of an action is `V(s)` of the state in which it starts. The most valuable action
is tried: one step, one evaluation. Ties go to the earlier proposal, then to the earlier state. The search ends after `iterations`
evaluations (20 in the paper) and chooses the best state of the tree, the first of equals.

Conventions. The root is evaluated too and counts as one iteration, as in the paper (the authors' program starts all root actions at 0.5
instead). A state is expanded when its first action is due, not when it is evaluated: the order is the same, and proposals that are never
tried are never requested. The authors' program commits the whole path: `plan`; `replan` commits its first action and retains the frontier
below. Their search stops at a value of 1; here `enough` stops it, only at ends, and only once confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator

from exact.search.algorithms.lookahead import Lookahead, reachable, untried
from exact.search.base import Selection, Wait
from exact.search.tree import Node, Tree


class BestFirst(Lookahead):
    """Best-first search. Several workers try the next most valuable actions."""

    reason = "leads to the most valuable state found"

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Return the step of the most valuable action of the frontier."""
        if (asked := self._evaluate(tree)) is not None:
            return asked
        waiting = [node for node in (tree.root, *reachable(tree)) if self._can_expand(tree, node) and not node.pending]
        for node in sorted(waiting, key=_due):
            if (asked := self._propose(tree, node)) is not None:
                return asked
            if tries := untried(node):
                return self._step(tree, node, tries[0])
        return None

    def _choices(self, tree: Tree) -> Iterator[Node]:
        """Yield all evaluated states below the root."""
        return (node for node in reachable(tree) if node.value is not None)


def _due(node: Node) -> tuple[float, int, int]:
    """Return the sort key of a state's next action in the frontier."""
    tries = untried(node)
    return -(node.value or 0.0), tries[0] if tries else 0, node.id
