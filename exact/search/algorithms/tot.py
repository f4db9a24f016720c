"""Tree of Thoughts over actions (Yao et al. 2023): breadth-first by levels, or depth-first with backtracking.

`TotBFS`: at each level propose `k` actions in each state, rate the new states, retain the best `breadth`. The ratings are

    value   each state on its own: V(s)
    vote    each state against its siblings: their shares of the votes sum to 1; a state without siblings is evaluated on its own

With votes the score of a state is the geometric mean of the shares on its path. The authors hold one vote over a whole level. Here siblings
are compared, and a state's share counts times those above it, so that a comparison is work about one state.

`TotDFS`: propose in a state, rate all children, enter the best one first. Children below `threshold` are not entered. At an end or at
`depth` go back to the next best. The siblings of one state can be in flight together.

Both choose among all states that were not expanded; the authors' breadth-first search chooses among its last level.
"""

from __future__ import annotations

from typing import Any, Literal

from exact.search.algorithms.beam import Beam
from exact.search.algorithms.lookahead import Lookahead, path_to, transitions, unfinished, untried
from exact.search.base import Selection, Wait
from exact.search.tree import Node, Tree

Rating = Literal["value", "vote"]
"""How states are rated; see the module."""


class TotBFS(Beam):
    """Breadth-first tree of thoughts. breadth: number of states retained at each level. rating: by value or by vote."""

    reason = "leads to the best thought"

    def __init__(self, *, rating: Rating = "value", **more: Any) -> None:
        super().__init__(**more)
        self.rating = rating
        if rating == "vote":
            self.together = "comparison"

    def _score(self, tree: Tree, node: Node) -> float:
        """Return V, or with votes the geometric mean of the shares on the path."""
        if self.rating == "value":
            return super()._score(tree, node)
        shares = [*(above for above, _ in path_to(tree, node)[1:]), node]
        product = 1.0
        for state in shares:
            product *= state.value or 0.0
        return float(product ** (1 / len(shares)))


class TotDFS(Lookahead):
    """Depth-first tree of thoughts. threshold: value in [0, 1] below which a state is not entered."""

    reason = "leads to the best state found depth first"

    def __init__(self, *, threshold: float = 0.2, **more: Any) -> None:
        super().__init__(**more)
        self.threshold = threshold

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Return the next work of the depth-first search."""
        return self._evaluate(tree) or self._visit(tree, tree.root)

    def _visit(self, tree: Tree, node: Node) -> Selection | Wait | None:
        """Return work in a state or, once all its actions are rated, in its best child that has any."""
        if node.pending:
            return Wait()
        if (asked := self._propose(tree, node)) is not None:
            return asked
        if tries := untried(node):
            return self._step(tree, node, tries[0])
        if unfinished(node):
            return Wait()
        children = {child.id: child for _, child in transitions(node) if self._can_expand(tree, child)}
        for child in sorted(children.values(), key=lambda child: (-(child.value or 0.0), child.id)):
            if (child.value or 0.0) >= self.threshold and (found := self._visit(tree, child)) is not None:
                return found
        return None
