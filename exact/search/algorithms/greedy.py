"""One-step greedy search: try every proposal once, evaluate each, commit the best. ReAct with a value filter."""

from __future__ import annotations

from exact.search.base import Decision, Done, Selection, Wait
from exact.search.rules.final import most_likely, most_valued, rank_unseen
from exact.search.tree import Tree
from exact.search.work import Work


class Greedy(Work):
    """Greedy search of depth one. Asks for other proposals if none of the first may be committed."""

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the proposals, then one step and evaluation for each."""
        root = tree.root
        if root.closed or root.leaf:
            return Done(root.closed or "the episode has ended")
        if root.pending:
            return Wait()
        if not root.expansions or (not most_likely(root) and root.expansions <= self.retries):
            return self.select_state(tree, [], root, "proposals", draw=root.expansions)
        for i, edge in enumerate(root.edges):
            if edge.closed or edge.in_flight:
                continue
            if edge.child is None:
                return self.select_step(tree, [(root, edge)], i)
            if edge.child.evaluation is None and not edge.child.pending:
                return self.select_state(tree, [(root, edge)], edge.child, "value")
        return Wait() if tree.open else Done("every proposal was evaluated")

    def decide(self, tree: Tree) -> Decision:
        """Return the action with the highest value one step ahead."""
        order = rank_unseen(tree.root, most_valued(tree.root))
        return self.commit(tree, order or most_likely(tree.root), "the highest value one step ahead")
