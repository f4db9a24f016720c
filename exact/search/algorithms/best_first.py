"""Best-first search over a value-ordered frontier (Koh et al. 2024, "Tree Search for Language Model Agents").

The frontier holds actions that were proposed and not tried; each is worth what the state it starts in was judged to be, `V(s)`. The
most valuable is tried: one step, one judgement. Of equals the earlier proposal goes first, then the earlier state. It ends after
`iterations` evaluations (theirs: 20) and chooses the best state seen anywhere, the first of equals.

Conventions. The root is judged too and counts as one iteration, as in the paper (their program starts all root actions at 0.5
instead). A state is proposed in when its first action is due, not when it is judged: the order is the same, and what is never
tried is never asked for. Their program commits the whole way: `plan`; `replan` commits its first action and keeps the frontier
below. They stop at a value of 1; here `enough` stops, at ends only, and once confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator

from exact.search.algorithms.lookahead import Lookahead, reachable, untried
from exact.search.base import Selection, Wait
from exact.search.tree import Node, Tree


class BestFirst(Lookahead):
    """Tries the most valuable action of the frontier. With several workers, the next most valuable ones."""

    reason = "leads to the most valuable state found"

    def _next(self, tree: Tree) -> Selection | Wait | None:
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
        return (node for node in reachable(tree) if node.value is not None)


def _due(node: Node) -> tuple[float, int, int]:
    """Where a state's next action stands in the frontier."""
    tries = untried(node)
    return -(node.value or 0.0), tries[0] if tries else 0, node.id
