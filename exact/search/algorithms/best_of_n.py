"""Best of n: n trajectories drawn from the policy, the best by the value function (rejection sampling with a judge).

A trajectory draws one action at a time (`sample`) until the episode ends, a write is held back, or it is `depth` actions long.
Only where it ends is it judged. The choice is the end of highest value; ends that say the same pool theirs (`answers`). Where the
value is the benchmark's own verdict this is ExACT's rejection sampling: an oracle.

Trajectories that draw the same actions share their states, so they are a flow down the tree: `n` through the root, and through an
edge as many as drew it, `P(s,a)` times the draws at s. A state asks for draws until there is one for each trajectory that comes
to it. A trajectory whose action is refused, changes nothing or cannot be carried out draws another, `retries` times in a state. After
a commit those that went the same way are kept, and the root is filled up to `n` again.

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
    """n: trajectories. All of them may be in flight at once."""

    reason = "leads to the best of the ends"

    def __init__(self, *, n: int = 3, **more: Any) -> None:
        super().__init__(**more)
        self.n = n

    def _next(self, tree: Tree) -> Selection | Wait | None:
        """Whatever any trajectory needs, the first state first."""
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
        """One more draw in a state, where fewer were made or are being made than trajectories need."""
        lost = sum(through for edge, through in zip(node.edges, _flow(node), strict=True) if _lost(edge))
        if node.expansions + drawing >= coming + min(lost, self.retries):
            return None
        return self.select_state(tree, path_to(tree, node), node, "sample", draw=node.expansions + node.failures + drawing)

    def _step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Judged at once where the trajectory is as long as it may be."""
        last = node.depth + 1 >= tree.root.depth + self.depth
        path = [*path_to(tree, node), (node, node.edges[index])]
        return self.select_step(tree, path, index, needs=("step", "value") if last else ("step",))

    def expand(self, tree: Tree, node: Node, proposals: Sequence[Proposal], *, drawn: bool = False) -> None:
        """The prior of an edge is the share of draws that drew it."""
        for edge in node.edges:
            edge.prior *= node.expansions
        super().expand(tree, node, proposals)


def _lost(edge: Edge) -> bool:
    """Whether trajectories that drew an edge cannot follow it."""
    return edge.futile or edge.unsearched or (bool(edge.closed) and edge.child is None)


def _flow(node: Node) -> list[int]:
    """How many draws went along each edge; together as many as there were."""
    total, before, flow = 0.0, 0, list[int]()
    for edge in node.edges:
        total += edge.prior * node.expansions
        flow.append(round(total) - before)
        before = round(total)
    return flow


def _drawing(tree: Tree) -> dict[int, int]:
    """Draws in flight, by node."""
    found: dict[int, int] = {}
    for work in tree.open.values():
        if "sample" in work.selection.needs:
            found[work.selection.node] = found.get(work.selection.node, 0) + 1
    return found
