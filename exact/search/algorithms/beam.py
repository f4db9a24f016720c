"""Beam search: at each level the best `breadth` states are expanded.

Level 0 is the root. Every proposal in every state of a level is tried and evaluated. The `breadth` best new states form the next level. The
score of a state s is

    state        V(s)
    cumulative   the mean of V over the states from the root's child to s

At one level the mean orders states as the sum does; it also compares ends of different depths. Ends take no slot in the beam. At the end
the search chooses among all states that it did not expand, ends and pruned ones included.

Sources: Lowerre 1976; cumulative scores with length normalisation, Wu et al. 2016; over thoughts, Xie et al. 2023. A level is the unit of
parallelism: all of it may be in flight at once. The subtree below a committed action is retained and not requested again.
"""

from __future__ import annotations

from typing import Any, Literal

from exact.search.algorithms.lookahead import Lookahead, path_to, transitions, unfinished, untried, worth
from exact.search.base import Need, Selection, Wait
from exact.search.tree import Node, Tree

Score = Literal["state", "cumulative"]
"""Score that decides which states stay in the beam; see the module."""


class Beam(Lookahead):
    """Beam search.

    breadth: number of states expanded at each level. score: see Score. batch: whether siblings are evaluated together in one request.
    """

    reason = "leads to the best state of the beam"

    def __init__(self, *, breadth: int = 3, score: Score = "state", batch: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.breadth, self.score = breadth, score
        self.together: Need | None = "batch" if batch else None

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Return the next missing piece of the current level."""
        if (asked := self._evaluate(tree)) is not None:
            return asked
        level = [tree.root]
        while level:
            for node in level:
                if not node.pending and (asked := self._complete(tree, node)) is not None:
                    return asked
            if any(unfinished(node) for node in level):
                return Wait()
            level = self._next_level(tree, level)
        return None

    def _complete(self, tree: Tree, node: Node) -> Selection | None:
        """Return the work that a state of the level still lacks: proposals, an untried action, or the joint evaluation of its children."""
        if (asked := self._propose(tree, node)) is not None:
            return asked
        if tries := untried(node):
            return self._step(tree, node, tries[0])
        return self._together(tree, node, self.together) if self.together is not None else None

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Reserve a step, without its own evaluation if siblings are evaluated together."""
        if self.together is None:
            return super()._step(tree, node, index)
        return self.select_step(tree, [*path_to(tree, node), (node, node.edges[index])], index, needs=("step",))

    def _evaluate(self, tree: Tree) -> Selection | None:
        """Return the evaluation that a state lacks. If siblings are evaluated together, only the root is evaluated alone."""
        if self.together is None:
            return super()._evaluate(tree)
        root = tree.root
        wants = self.together == "batch" and root.value is None and not root.pending and not root.closed
        return self.select_state(tree, [], root, "value") if wants else None

    def _together(self, tree: Tree, node: Node, need: Need) -> Selection | None:
        """Return the joint evaluation of a state's children once all of them are there."""
        if any(edge.in_flight and edge.child is None for edge in node.edges):
            return None
        rivals = [i for i, edge in enumerate(node.edges) if edge.child is not None and not edge.closed and edge.child.value is None]
        if len(rivals) > 1:
            affordable = self._left(tree) >= len(rivals)
            return self.select_state(tree, path_to(tree, node), node, need, rivals=tuple(rivals)) if affordable else None
        alone = node.edges[rivals[0]].child if rivals else None
        return self.select_state(tree, path_to(tree, alone), alone, "value") if alone is not None and not alone.pending else None

    def _next_level(self, tree: Tree, level: list[Node]) -> list[Node]:
        """Return the states of the next level, best first; of equals the one found first."""
        found = {
            child.id: child for node in level for _, child in transitions(node) if child.value is not None and self._can_expand(tree, child)
        }
        return sorted(found.values(), key=lambda node: (-self._score(tree, node), node.id))[: self.breadth]

    def _score(self, tree: Tree, node: Node) -> float:
        """Return the score of a state."""
        if self.score == "state":
            return super()._score(tree, node)
        values = [above.value or 0.0 for above, _ in path_to(tree, node)[1:]] + [worth(tree, node)]
        return sum(values) / len(values)
