"""AB-MCTS, variant A (Inoue et al. 2025, "Wider or Deeper? Scaling LLM Inference-Time Compute with Adaptive Branching Tree Search").

At each state Thompson sampling chooses between GEN, one more action drawn from the policy, and CONT, going on in a child; then among the
children by their own draws. A draw is from the conjugate posterior (posterior.py) of an arm's values, one for each judged state:

- GEN: the children's own values. CONT: the values of all states below the children. A child: its own value and all below it.
- A policy, where there are several: the values of all states that its actions led to. It is drawn after GEN was.

So much is TreeQuest's ABMCTSA with its default, `multiarm_bandit_thompson`. What actions in an environment add: one that was drawn and is
known already counts as CONT on its child, for which the search goes on there; an end is no child to go on in (it is judged again
while it may be); where the policy keeps drawing what is known, `patience` draws for each action and one more, GEN is closed. The root is
not judged. Committed is the action with the highest posterior mean.

Draws are keyed by (seed, node, how many decisions were made there before). An ask costs time linear in the size of the tree.
"""

from __future__ import annotations

from typing import Any

from exact.search.base import Done, Proposed, Result, Selection, Wait
from exact.search.mcts import MCTS
from exact.search.rules.draw import generator
from exact.search.rules.final import FinalChoice
from exact.search.rules.posterior import Belief, Beta, Moments
from exact.search.rules.select import follow
from exact.search.tree import Edge, Node, Open, Path, Tree

GEN = -1
"""In place of an edge's index: draw one more action."""


class ABMCTS(MCTS):
    """belief: prior of all arms. policies: how many of the agent's policies may be drawn from. patience: see above. The rest is MCTS's,
    but for its selection rule, final choice, expansion and widening."""

    def __init__(self, *, belief: Belief | None = None, policies: int = 1, patience: int = 4, **more: Any) -> None:
        self.belief: Belief = belief or Beta()
        self.policies, self.patience = policies, patience
        final = FinalChoice(self._order, _alone, "the highest posterior mean")
        super().__init__(final=final, k=1, **more)

    # --- walking

    def _walk(self, tree: Tree) -> Selection | Wait | Done | None:
        """First what was drawn and is not followed yet, then from the root."""
        while tree.sampled:
            node, index = tree.sampled.pop(0)
            path, edge = _open_path(tree, node), node.edges[index]
            if path is not None and not edge.closed and (edge.child is not None or not edge.in_flight):
                return self._follow(tree, path, node, index)
        return self._down(tree, tree.root, [])

    def _down(self, tree: Tree, node: Node, path: Path) -> Selection | Wait | Done | None:
        while True:
            if node.evaluation is None and node is not tree.root:
                return Wait() if node.pending else self.select_state(tree, path, node, "value", draw=node.evaluations)
            if node.leaf or node.depth >= tree.root.depth + self.depth:
                return Wait() if node.pending else self._revisit(tree, path, node)
            index = self._choose(tree, node)
            if index is None:
                return self._dead_end(tree, path, node)
            if index == GEN:
                return self._generate(tree, path, node)
            edge = node.edges[index]
            if edge.child is None:
                return self._follow(tree, path, node, index)
            path.append((node, edge))
            node = follow(edge)

    def _follow(self, tree: Tree, path: Path, node: Node, index: int) -> Selection | Wait | Done | None:
        """Take an action: the step, if it was never taken; else go on where it leads."""
        edge = node.edges[index]
        path.append((node, edge))
        return self.select_step(tree, path, index) if edge.child is None else self._down(tree, follow(edge), path)

    def _generate(self, tree: Tree, path: Path, node: Node) -> Selection:
        draw = node.expansions + _sampling(tree, node)
        return self.select_state(tree, path, node, "sample", draw=draw, policy=self._policy(tree, node, draw), k=1)

    def _dead_end(self, tree: Tree, path: Path, node: Node) -> Selection | Wait | Done | None:
        if _sampling(tree, node) or (node is tree.root and tree.open):
            return Wait()
        if node is tree.root and all(edge.closed for edge in node.edges):
            return self._reevaluate(tree, early=True) or self._finish(tree, "every action was tried, and the policy draws no other")
        return super()._dead_end(tree, path, node)

    # --- choosing

    def _choose(self, tree: Tree, node: Node) -> int | None:
        """GEN, the index of the edge to go on in, or None where there is neither."""
        fresh = [i for i, edge in enumerate(node.edges) if not edge.closed and not edge.in_flight and _is_unevaluated(edge)]
        draws = node.expansions + _sampling(tree, node)
        generates = bool(fresh) or draws < self.patience * (len(node.edges) + 1)
        children = [i for i, edge in enumerate(node.edges) if not edge.closed and not _is_unevaluated(edge)]
        dice = generator(tree.seed, "thompson", node.id, node.visits + node.in_flight + node.expansions)
        if not children:
            wider = generates
        elif not generates:
            wider = False
        else:
            wide, deep = widths(node)
            wider = self.belief.draw(wide, dice) >= self.belief.draw(deep, dice)
        if wider:
            return fresh[0] if fresh else GEN
        return max(children, key=lambda i: self.belief.draw(below(node.edges[i]), dice), default=None)

    def _policy(self, tree: Tree, node: Node, draw: int) -> int:
        """Which policy draws: that of the highest draw from all that its actions led to."""
        if self.policies == 1:
            return 0
        seen = [Moments()] * self.policies
        for state in tree.nodes:
            if state.edge is not None and state.value is not None and state.edge.policy < self.policies:
                seen[state.edge.policy] = seen[state.edge.policy].plus(single(state.value))
        dice = generator(tree.seed, "policy", node.id, draw)
        return max(range(self.policies), key=lambda i: self.belief.draw(seen[i], dice))

    # --- what is drawn

    def _take_in(self, tree: Tree, work: Open, result: Result) -> None:
        node = work.target
        known = len(node.edges) if node is not None else 0
        super()._take_in(tree, work, result)
        if isinstance(result, Proposed) and node is not None:
            for edge in node.edges[known:]:
                edge.policy = work.selection.policy
            keys = [edge.action.key for edge in node.edges]
            tree.sampled += [(node, keys.index(proposal.action.key)) for proposal in result.proposals]

    # --- the end

    def _order(self, tree: Tree, node: Node) -> list[int]:
        """Indices of the visited edges that may be committed, by posterior mean, then by visits, then by order."""
        possible = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
        return sorted(possible, key=lambda i: (-self.belief.mean(below(node.edges[i])), -node.edges[i].visits, i))


def single(value: float) -> Moments:
    """One value."""
    return Moments(1, value, value * value)


def below(edge: Edge) -> Moments:
    """The values of all judged states that an edge leads to, the first ones included."""
    seen = Moments()
    for child in edge.outcomes:
        if child.value is not None:
            seen = seen.plus(single(child.value))
        for further in child.edges:
            seen = seen.plus(below(further))
    return seen


def widths(node: Node) -> tuple[Moments, Moments]:
    """What GEN and CONT have had at a node: the children's own values, and the values below them."""
    wide, all_ = Moments(), Moments()
    for edge in node.edges:
        all_ = all_.plus(below(edge))
        for child in edge.outcomes:
            if child.value is not None:
                wide = wide.plus(single(child.value))
    return wide, Moments(all_.n - wide.n, all_.total - wide.total, all_.squares - wide.squares)


def _is_unevaluated(edge: Edge) -> bool:
    """Whether what an action leads to is not known yet."""
    return edge.child is None or follow(edge).evaluation is None


def _sampling(tree: Tree, node: Node) -> int:
    """How many samples of a state are in flight."""
    return sum(work.target is node and "sample" in work.selection.needs for work in tree.open.values())


def _open_path(tree: Tree, node: Node) -> Path | None:
    """The path from the root to a state; None where it lies elsewhere, or the way is closed."""
    path: Path = []
    while node is not tree.root:
        if node.parent is None or node.parent.edges[node.via].closed:
            return None
        path.append((node.parent, node.parent.edges[node.via]))
        node = node.parent
    return path[::-1]


def _alone(tree: Tree, node: Node, left: int) -> bool:
    """Any draw may still add an action."""
    return False
