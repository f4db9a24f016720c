"""Beam search: level by level, the best `breadth` states of each are looked beyond.

Level 0 is the root. Every proposal in every kept state of a level is tried and judged; of the states that come, the `breadth` best are
kept. A state scores

    state        V(s)
    cumulative   the mean of V over the states from the root's child to s

(at one level the mean orders as the sum does; it also compares ends of different depths). Ends take no place in the beam and are
not lost: at the end the search chooses among all states that it did not look beyond, ends and pruned ones included.

Sources: Lowerre 1976; cumulative scores with length normalisation, Wu et al. 2016; over thoughts, Xie et al. 2023. A level is
the unit of parallelism: all of it may be in flight at once. What is below the root after a commit is kept and not asked for again.
"""

from __future__ import annotations

from typing import Any, Literal

from exact.search.algorithms.lookahead import Lookahead, path_to, transitions, unfinished, untried, worth
from exact.search.base import Need, Selection, Wait
from exact.search.tree import Node, Tree

Score = Literal["state", "cumulative"]
"""What a state is kept for: see above."""


class Beam(Lookahead):
    """breadth: states kept at each level. score: what they are kept for. batch: whether siblings are judged together, in one question."""

    reason = "leads to the best state of the beam"

    def __init__(self, *, breadth: int = 3, score: Score = "state", batch: bool = False, **more: Any) -> None:
        super().__init__(**more)
        self.breadth, self.score = breadth, score
        self.together: Need | None = "batch" if batch else None

    def _next(self, tree: Tree) -> Selection | Wait | None:
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
        """What a kept state still lacks: proposals, or the next of its actions to be tried."""
        if (asked := self._propose(tree, node)) is not None:
            return asked
        if tries := untried(node):
            return self._step(tree, node, tries[0])
        return self._together(tree, node, self.together) if self.together is not None else None

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        if self.together is None:
            return super()._step(tree, node, index)
        return self.select_step(tree, [*path_to(tree, node), (node, node.edges[index])], index, needs=("step",))

    def _evaluate(self, tree: Tree) -> Selection | None:
        """With siblings judged together only the root is judged apart."""
        if self.together is None:
            return super()._evaluate(tree)
        root = tree.root
        wants = self.together == "batch" and root.value is None and not root.pending and not root.closed
        return self.select_state(tree, [], root, "value") if wants else None

    def _together(self, tree: Tree, node: Node, need: Need) -> Selection | None:
        """Once all siblings are there: what rates those that are not rated yet."""
        if any(edge.in_flight and edge.child is None for edge in node.edges):
            return None
        rivals = [i for i, edge in enumerate(node.edges) if edge.child is not None and not edge.closed and edge.child.value is None]
        if len(rivals) > 1:
            affordable = self._left(tree) >= len(rivals)
            return self.select_state(tree, path_to(tree, node), node, need, rivals=tuple(rivals)) if affordable else None
        alone = node.edges[rivals[0]].child if rivals else None
        return self.select_state(tree, path_to(tree, alone), alone, "value") if alone is not None and not alone.pending else None

    def _next_level(self, tree: Tree, level: list[Node]) -> list[Node]:
        """The states of the next level that are looked beyond, best first; of equals the one found first."""
        found = {
            child.id: child for node in level for _, child in transitions(node) if child.value is not None and self._can_expand(tree, child)
        }
        return sorted(found.values(), key=lambda node: (-self._score(tree, node), node.id))[: self.breadth]

    def _score(self, tree: Tree, node: Node) -> float:
        if self.score == "state":
            return super()._score(tree, node)
        values = [above.value or 0.0 for above, _ in path_to(tree, node)[1:]] + [worth(tree, node)]
        return sum(values) / len(values)
