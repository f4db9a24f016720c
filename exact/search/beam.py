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

from exact.search.base import Selection, Wait
from exact.search.lookahead import Lookahead, unfinished, untried, way, ways, worth
from exact.search.tree import Node, Tree

Score = Literal["state", "cumulative"]
"""What a state is kept for: see above."""


class Beam(Lookahead):
    """breadth: states kept at each level. score: what they are kept for."""

    reason = "leads to the best state of the beam"

    def __init__(self, *, breadth: int = 3, score: Score = "state", **more: Any) -> None:
        super().__init__(**more)
        self.breadth, self.score = breadth, score

    def _next(self, tree: Tree) -> Selection | Wait | None:
        if (asked := self._unjudged(tree)) is not None:
            return asked
        level = [tree.root]
        while level:
            for node in level:
                if not node.pending and (asked := self._complete(tree, node)) is not None:
                    return asked
            if any(unfinished(node) for node in level):
                return Wait()
            level = self._kept(tree, level)
        return None

    def _complete(self, tree: Tree, node: Node) -> Selection | None:
        """What a kept state still lacks: proposals, or the next of its actions to be tried."""
        if (asked := self._expands(tree, node)) is not None:
            return asked
        tries = untried(node)
        return self._try(tree, node, tries[0]) if tries else None

    def _kept(self, tree: Tree, level: list[Node]) -> list[Node]:
        """The states of the next level that are looked beyond, best first; of equals the one found first."""
        found = {child.id: child for node in level for _, child in ways(node) if child.value is not None and self._can_go_on(tree, child)}
        return sorted(found.values(), key=lambda node: (-self._score(tree, node), node.id))[: self.breadth]

    def _score(self, tree: Tree, node: Node) -> float:
        if self.score == "state":
            return super()._score(tree, node)
        values = [above.value or 0.0 for above, _ in way(tree, node)[1:]] + [worth(tree, node)]
        return sum(values) / len(values)
