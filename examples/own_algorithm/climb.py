"""Hill climbing as a search algorithm. An algorithm of your own says which work comes next and what to commit.

`Work` does the rest: reservations, results in any order, failures, no-ops and moves of the root. All state is in the tree.
"""

from __future__ import annotations

from exact.config import SearchConfig
from exact.search.base import Decision, Done, Selection, Wait
from exact.search.rules.final import most_likely, most_valued
from exact.search.tree import Path, Tree
from exact.search.work import Work


class Climb(Work):
    """Algorithm that tries all actions of a state and moves to the best successor while that is better than the state."""

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        node, path = tree.root, Path()
        while not node.leaf and not node.closed:
            if node.pending:
                return Wait()
            if node.value is None:
                return self.select_state(tree, path, node, "value")
            if not node.expansions:
                return self.select_state(tree, path, node, "proposals")
            for i, edge in enumerate(node.edges):
                if edge.child is None and not edge.closed and not edge.in_flight:
                    return self.select_step(tree, [*path, (node, edge)], i)
            if tree.open:
                return Wait()
            above = [edge for edge in node.edges if edge.child is not None and edge.visits and (edge.child.value or 0.0) > node.value]
            if not above:
                return Done("a summit")
            best = max(above, key=lambda edge: edge.child.value if edge.child is not None and edge.child.value is not None else 0.0)
            path.append((node, best))
            assert best.child is not None
            node = best.child
        return Wait() if tree.open else Done(node.closed or "an end")

    def decide(self, tree: Tree) -> Decision:
        return self.commit(tree, most_valued(tree.root) or most_likely(tree.root), "the steepest way up")


def build(config: SearchConfig) -> Climb:
    """Return the algorithm for a configuration: the target of the entry point. Your own options are in `config.options`."""
    return Climb(k=config.k, retries=config.retries)
