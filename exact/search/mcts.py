"""Monte Carlo tree search with priors (PUCT).

A leaf is judged on its first visit and expanded on its second; the root is judged too. One iteration backs up one value.
A judged terminal is an estimate like any other: visiting it again backs the same estimate up again and costs nothing.
"""

from __future__ import annotations

from exact.search.backup import back_up
from exact.search.base import Decision, Done, Selection, Wait
from exact.search.select import SelectionRule, first_play, most_likely, most_promising, most_visited, puct
from exact.search.tree import Edge, Node, Tree
from exact.search.work import Work

CLEARLY = 0.1
"""By how much, on the scale of values, an action that could not be searched must promise more to be committed."""


class MCTS(Work):
    """Ask/tell MCTS. `iterations` are granted for each committed action; what is left over carries to the next."""

    def __init__(
        self, *, iterations: int, k: int, c: float = 0.5, depth: int = 8, retries: int = 2, rule: SelectionRule | None = None
    ) -> None:
        super().__init__(k=k, retries=retries, iterations=iterations)
        self.depth, self.rule = depth, rule or puct(c)

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        if not tree.allowed:
            tree.allowed = self.iterations
        if tree.root.closed or tree.root.leaf:
            return Wait() if tree.root.in_flight else Done(tree.root.closed or "the episode has ended")
        while tree.iterations + tree.root.in_flight < tree.allowed:
            found = self._descend(tree)
            if found is not None:
                return found
        return Wait() if tree.root.in_flight else Done(f"{tree.iterations} iterations")

    def decide(self, tree: Tree) -> Decision:
        """The most visited action; one that could not be searched, so gathers no visits, if it promises clearly more."""
        root = tree.root
        order, others = most_visited(root), most_promising(root)
        if order and others and first_play(root, root.edges[others[0]]) > (root.edges[order[0]].value or 0.0) + CLEARLY:
            return self.commit(tree, others, "could not be searched, but promises more than what was")
        return self.commit(tree, order or most_likely(root), "most visits" if order else "the highest prior: nothing was explored")

    def _descend(self, tree: Tree) -> Selection | Wait | Done | None:
        """One walk from the root; None when it ended in a free back-up."""
        node = tree.root
        while True:
            if node.pending:
                return Wait()
            if node.evaluation is None:
                return self.select_state(tree, node, "value")
            if node.leaf or node.depth - tree.root.depth >= self.depth:
                back_up(tree, node, node.evaluation.value)
                return None
            if self._refused(node):
                return self.select_state(tree, node, "proposals")
            index = self._best(node)
            if index is None:
                return self._stuck(tree, node)
            edge = node.edges[index]
            if edge.child is None:
                return self.select_step(tree, node, index)
            node = edge.child

    def _stuck(self, tree: Tree, node: Node) -> Selection | Wait | Done | None:
        """No edge can be followed: expand, wait for one in flight, or close the node."""
        if any(not edge.closed for edge in node.edges):
            return Wait()
        if node.expansions == 0 or (node is tree.root and not most_visited(node) and node.expansions <= self.retries):
            return self.select_state(tree, node, "proposals")
        if node is tree.root:
            return Wait() if node.in_flight else Done("every action was tried")
        node.closed = "exhausted: every action was tried"
        assert node.edge is not None
        node.edge.closed = node.closed
        return None

    def _refused(self, node: Node) -> bool:
        """Whether the policy should hear, once, that the environment refuses what it proposed here."""
        return node.expansions == 1 and any(edge.futile for edge in node.edges)

    def _best(self, node: Node) -> int | None:
        open_ = [i for i, edge in enumerate(node.edges) if not edge.closed and not _busy(edge)]
        return max(open_, key=lambda i: self.rule(node, node.edges[i])) if open_ else None


def _busy(edge: Edge) -> bool:
    """Whether its state is being made, judged or expanded right now."""
    return bool(edge.in_flight) if edge.child is None else edge.child.pending or (edge.child.evaluation is None and bool(edge.in_flight))
