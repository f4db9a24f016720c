"""Tree of Thoughts over actions (Yao et al. 2023): breadth-first by levels, or depth-first with backtracking.

`TotBFS`: at each level propose `k` actions in each kept state, rate the states that come, keep the best `breadth`. They are rated

    value   each on its own: V(s)
    vote    against its siblings: their shares of the votes sum to 1; a state alone is judged on its own

With votes a state is kept, and in the end chosen, for the geometric mean of the shares on its way. The authors hold one vote over a
whole level; here siblings are compared and a state's share counts times those above it, so that a comparison is work about one state.

`TotDFS`: propose in a state, rate all that comes, go into the best first; what is rated below `threshold` is not gone into; at an end
or at `depth` go back to the next best. The siblings of one state are what can be in flight together.

Both choose among all states that were not looked beyond; the authors' breadth-first search among its last level.
"""

from __future__ import annotations

from typing import Any, Literal

from exact.search.algorithms.beam import Beam
from exact.search.algorithms.lookahead import Lookahead, path_to, transitions, unfinished, untried
from exact.search.base import Selection, Wait
from exact.search.tree import Node, Tree

Rating = Literal["value", "vote"]
"""How states are rated: see above."""


class TotBFS(Beam):
    """breadth: states kept at each level. rating: by value or by vote."""

    reason = "leads to the best thought"

    def __init__(self, *, rating: Rating = "value", **more: Any) -> None:
        super().__init__(**more)
        self.rating = rating
        if rating == "vote":
            self.together = "comparison"

    def _score(self, tree: Tree, node: Node) -> float:
        if self.rating == "value":
            return super()._score(tree, node)
        shares = [*(above for above, _ in path_to(tree, node)[1:]), node]
        product = 1.0
        for state in shares:
            product *= state.value or 0.0
        return float(product ** (1 / len(shares)))


class TotDFS(Lookahead):
    """threshold: value, in [0, 1], below which a state is not gone into."""

    reason = "leads to the best state found depth first"

    def __init__(self, *, threshold: float = 0.2, **more: Any) -> None:
        super().__init__(**more)
        self.threshold = threshold

    def _next(self, tree: Tree) -> Selection | Wait | None:
        return self._evaluate(tree) or self._visit(tree, tree.root)

    def _visit(self, tree: Tree, node: Node) -> Selection | Wait | None:
        """Work in a state or, where all its actions are rated, in the best state below that has any."""
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
