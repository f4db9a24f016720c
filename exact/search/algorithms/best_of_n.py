"""Best of n: n trajectories sampled from the policy, the best one by the value function (rejection sampling).

A trajectory samples one action at a time (`sample`) until the episode ends, a write is blocked, or it is `depth` actions long. Only its
last state is evaluated. The end with the highest value is chosen; ends with the same answer pool theirs (rules/merge.py). With an oracle
as value function this is ExACT's rejection sampling.

Trajectories with the same actions share states, so they form a flow down the tree: `n` through the root, and through an edge as many as
drew it, `P(s,a)` times the draws at s. A state asks for draws until there is one for each trajectory that reaches it. A trajectory whose
action is refused, changes nothing or fails samples another one, up to `retries` times in a state. After a commit the trajectories through
the committed action are retained, and the root is filled up to `n` again.

Sources: best of n, Stiennon et al. 2020; with pooled answers, weighted self-consistency, Wang et al. 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from exact.context import Proposal
from exact.search.algorithms.lookahead import Lookahead, path_to
from exact.search.base import Selection, Wait
from exact.search.tree import Edge, Node, Tree


class BestOfN(Lookahead):
    """Best of n. n: number of trajectories, all of which may be in flight at once."""

    reason = "leads to the best of the ends"

    def __init__(self, *, n: int = 3, **more: Any) -> None:
        super().__init__(**more)
        self.n = n

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Return the next work that any trajectory needs, for the first such state."""
        drawing, coming, queue = _drawing(tree), {tree.root.id: self.n}, [tree.root]
        for node in queue:  # grows as it is read: states below, by depth
            if not self._can_expand(tree, node):
                if node is not tree.root and node.value is None and not node.closed and not node.pending:
                    return self.select_state(tree, path_to(tree, node), node, "value")
                continue
            if (asked := self._sample(tree, node, coming[node.id], drawing.get(node.id, 0))) is not None:
                return asked
            for index, (edge, through) in enumerate(zip(node.edges, _flow(node), strict=True)):
                if not through or _lost(edge):
                    continue
                if edge.child is None:
                    if not edge.in_flight:
                        return self._step(tree, node, index)
                    continue
                for child in edge.outcomes:
                    if child.id not in coming:
                        queue.append(child)
                    coming[child.id] = coming.get(child.id, 0) + through
        return None

    def _sample(self, tree: Tree, node: Node, coming: int, drawing: int) -> Selection | None:
        """Return one more draw in a state that has fewer draws than its trajectories need."""
        lost = sum(through for edge, through in zip(node.edges, _flow(node), strict=True) if _lost(edge))
        if node.expansions + drawing >= coming + min(lost, self.retries):
            return None
        return self.select_state(tree, path_to(tree, node), node, "sample", draw=node.expansions + node.failures + drawing)

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Reserve a step, with an evaluation if the trajectory then has its maximum length."""
        last = node.depth + 1 >= tree.root.depth + self.depth
        path = [*path_to(tree, node), (node, node.edges[index])]
        return self.select_step(tree, path, index, needs=("step", "value") if last else ("step",))

    def expand(self, tree: Tree, node: Node, proposals: Sequence[Proposal], *, drawn: bool = False) -> None:
        """Merge samples into a state's edges. The prior of an edge is its share of the draws."""
        for edge in node.edges:
            edge.prior *= node.expansions
        super().expand(tree, node, proposals)


def _lost(edge: Edge) -> bool:
    """Return whether the trajectories that drew an edge cannot follow it."""
    return edge.futile or edge.unsearched or (bool(edge.closed) and edge.child is None)


def _flow(node: Node) -> list[int]:
    """Return the number of draws of each edge. They sum to the number of draws in the state."""
    total, before, flow = 0.0, 0, list[int]()
    for edge in node.edges:
        total += edge.prior * node.expansions
        flow.append(round(total) - before)
        before = round(total)
    return flow


def _drawing(tree: Tree) -> dict[int, int]:
    """Return the number of draws in flight, by node id."""
    found: dict[int, int] = {}
    for work in tree.open.values():
        if "sample" in work.selection.needs:
            found[work.selection.node] = found.get(work.selection.node, 0) + 1
    return found
