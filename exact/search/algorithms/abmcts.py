"""AB-MCTS, variant A (Inoue et al. 2025, "Wider or Deeper? Scaling LLM Inference-Time Compute with Adaptive Branching Tree Search").

At each state Thompson sampling chooses between GEN, which samples one more action from the policy, and CONT, which continues in a child.
The child is then chosen by its own draw. A draw comes from the conjugate posterior (rules/posterior.py) of an arm's values, one for each
evaluated state:

- GEN: the children's own values.
- CONT: the values of all states below the children.
- A child: its own value and all values below it.
- A policy, if the agent has several: the values of all states that its actions led to. It is drawn after GEN was chosen.

This is TreeQuest's ABMCTSA with its default, `multiarm_bandit_thompson`. Actions in an environment add three cases. A sampled action that
is known counts as CONT on its child, and the search continues there. An end is not a child to continue in; it is evaluated again while that
is allowed. GEN is closed once the policy has drawn `patience` times for each known action and once more. The root is not evaluated. The
action with the highest posterior mean is committed.

Draws are keyed by (seed, node, number of decisions made there). An ask takes time linear in the size of the tree.
"""

from __future__ import annotations

from typing import Any

from exact.search.base import Done, Proposed, Result, Selection, Wait
from exact.search.mcts import MCTS
from exact.search.rules.backup import generator
from exact.search.rules.final import FinalChoice
from exact.search.rules.posterior import Belief, Beta, Moments
from exact.search.rules.select import follow, is_due
from exact.search.tree import Edge, Node, Open, Path, Tree

GEN = -1
"""Stands for an edge's index: sample one more action."""


class ABMCTS(MCTS):
    """Adaptive branching MCTS.

    belief: prior of all arms. policies: number of the agent's policies to draw from. patience: see the module. The other parameters are
    those of MCTS, except selection rule, final choice, expansion and widening.
    """

    def __init__(self, *, belief: Belief | None = None, policies: int = 1, patience: int = 4, **more: Any) -> None:
        self.belief: Belief = belief or Beta()
        self.policies, self.patience = policies, patience
        final = FinalChoice(self._order, "the highest posterior mean")
        super().__init__(final=final, k=1, **more)

    # --- walking

    def _walk(self, tree: Tree) -> Selection | Wait | Done | None:
        """Follow a sampled action that was not followed yet; otherwise descend from the root."""
        while tree.sampled:
            node, index = tree.sampled.pop(0)
            if node.depth >= tree.root.depth + self.depth:
                continue  # a viewer asked for the proposals of a state at the depth limit
            path, edge = _open_path(tree, node), node.edges[index]
            if path is not None and not edge.closed and (edge.child is not None or not edge.in_flight):
                return self._follow(tree, path, node, index)
        return self._down(tree, tree.root, [])

    def _down(self, tree: Tree, node: Node, path: Path) -> Selection | Wait | Done | None:
        """Descend from a state to work, choosing between GEN and CONT at each state."""
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
            if edge.child is None or is_due(tree, edge):
                return Wait() if edge.in_flight else self._follow(tree, path, node, index)
            path.append((node, edge))
            node = follow(edge)

    def _follow(self, tree: Tree, path: Path, node: Node, index: int) -> Selection | Wait | Done | None:
        """Take an action: reserve its step, or continue at its outcome if the step was taken before."""
        edge = node.edges[index]
        path.append((node, edge))
        return self.select_step(tree, path, index) if edge.child is None or is_due(tree, edge) else self._down(tree, follow(edge), path)

    def _generate(self, tree: Tree, path: Path, node: Node) -> Selection:
        """Reserve a sample of one more action."""
        draw = node.expansions + _sampling(tree, node)
        return self.select_state(tree, path, node, "sample", draw=draw, policy=self._policy(tree, node, draw), k=1)

    def _dead_end(self, tree: Tree, path: Path, node: Node) -> Selection | Wait | Done | None:
        """Handle a state without a choice: wait for samples in flight, or end the search at the root."""
        if _sampling(tree, node) or (node is tree.root and tree.open):
            return Wait()
        if node is tree.root and all(edge.closed for edge in node.edges):
            reason = "every action was tried, and the policy draws no other"
            return self._reevaluate(tree, early=True) or self._try_twice(tree) or self._finish(tree, reason)
        return super()._dead_end(tree, path, node)

    # --- choosing

    def _choose(self, tree: Tree, node: Node) -> int | None:
        """Return GEN, the index of the edge to continue in, or None if there is neither."""
        fresh = [i for i, edge in enumerate(node.edges) if not edge.closed and not edge.in_flight and _is_unevaluated(edge)]
        draws = node.expansions + _sampling(tree, node)
        generates = bool(fresh) or draws < self.patience * (len(node.edges) + 1)
        children = [i for i, edge in enumerate(node.edges) if not edge.closed and not _is_unevaluated(edge)]
        rng = generator(tree.seed, "thompson", node.id, node.visits + node.in_flight + node.expansions)
        if not children:
            wider = generates
        elif not generates:
            wider = False
        else:
            wide, deep = widths(node)
            wider = self.belief.draw(wide, rng) >= self.belief.draw(deep, rng)
        if wider:
            return fresh[0] if fresh else GEN
        return max(children, key=lambda i: self.belief.draw(below(node.edges[i]), rng), default=None)

    def _policy(self, tree: Tree, node: Node, draw: int) -> int:
        """Return the index of the policy with the highest draw from the values that its actions led to."""
        if self.policies == 1:
            return 0
        moments = [Moments()] * self.policies
        for state in tree.nodes:
            if state.edge is not None and state.value is not None and state.edge.policy < self.policies:
                moments[state.edge.policy] = moments[state.edge.policy].plus(single(state.value))
        rng = generator(tree.seed, "policy", node.id, draw)
        return max(range(self.policies), key=lambda i: self.belief.draw(moments[i], rng))

    # --- draws

    def _take_in(self, tree: Tree, work: Open, result: Result) -> None:
        """Take in a result, and queue the sampled actions to be followed."""
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
        """Return the indices of the visited edges that may be committed, by posterior mean, then visits, then order."""
        possible = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
        return sorted(possible, key=lambda i: (-self.belief.mean(below(node.edges[i])), -node.edges[i].visits, i))


def single(value: float, times: int = 1) -> Moments:
    """Return the moments of one value, or of one that came several times."""
    return Moments(times, times * value, times * value * value)


def _times(edge: Edge, child: Node) -> int:
    """Return how often a state counts among those that an edge leads to: by its arrivals, if there are others."""
    return max(1, child.arrivals) if edge.others else 1


def below(edge: Edge) -> Moments:
    """Return the moments of the values of all evaluated states that an edge leads to, directly or further down."""
    moments = Moments()
    for child in edge.outcomes:
        if child.value is not None:
            moments = moments.plus(single(child.value, _times(edge, child)))
        for further in child.edges:
            moments = moments.plus(below(further))
    return moments


def widths(node: Node) -> tuple[Moments, Moments]:
    """Return the moments of GEN and CONT at a node: the children's own values, and the values below them."""
    wide, all_ = Moments(), Moments()
    for edge in node.edges:
        all_ = all_.plus(below(edge))
        for child in edge.outcomes:
            if child.value is not None:
                wide = wide.plus(single(child.value, _times(edge, child)))
    return wide, Moments(all_.n - wide.n, all_.total - wide.total, all_.squares - wide.squares)


def _is_unevaluated(edge: Edge) -> bool:
    """Return whether the action's outcome is unknown or not evaluated yet."""
    return edge.child is None or follow(edge).evaluation is None


def _sampling(tree: Tree, node: Node) -> int:
    """Return the number of samples of a state in flight."""
    return sum(work.target is node and "sample" in work.selection.needs for work in tree.open.values())


def _open_path(tree: Tree, node: Node) -> Path | None:
    """Return the path from the root to a state, or None if it lies elsewhere or an edge on the path is closed."""
    path: Path = []
    while node is not tree.root:
        if node.parent is None or node.parent.edges[node.via].closed:
            return None
        path.append((node.parent, node.parent.edges[node.via]))
        node = node.parent
    return path[::-1]
