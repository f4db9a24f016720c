"""ReAct (Yao et al. 2023): propose one action and take it, without simulation or values."""

from __future__ import annotations

from exact.search.base import Decision, Done, Selection, Wait
from exact.search.rules.final import most_likely
from exact.search.tree import Tree
from exact.search.work import Work


class React(Work):
    """One proposal for each action; another one if it was refused."""

    simulates = False

    def __init__(self, *, retries: int = 2) -> None:
        super().__init__(k=1, retries=retries)

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve a proposal until there is one that may be committed."""
        root = tree.root
        if root.closed or root.leaf:
            return Done(root.closed or "the episode has ended")
        if root.pending:
            return Wait()
        if root.expansions and most_likely(root):
            return Done("proposed")
        if root.expansions - len(root.edges) > self.retries:
            return Done("the policy proposes only refused actions")
        return self.select_state(tree, [], root, "proposals", draw=root.expansions)

    def decide(self, tree: Tree) -> Decision:
        """Return the policy's first choice."""
        return self.commit(tree, most_likely(tree.root), "the policy's first choice")
