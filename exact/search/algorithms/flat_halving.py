"""Flat sequential halving: a baseline without a tree (Karnin, Koren and Somekh 2013, "Almost optimal exploration in multi-armed bandits").

The root's actions are arms. Pulling an arm evaluates the state it leads to once more; the first pull takes the step. With n arms and B
iterations, each of `ceil(log2 n)` phases pulls its c arms `max(1, floor(B / (c ceil(log2 n))))` times and retains the better half by mean
value, `ceil(c / 2)`, at least two. B and n are the iterations and arms left when a phase begins. Ties go to the higher prior, then to the
first. The arm with the highest mean of the last phase is committed.

A state is evaluated at most `evaluations` times; with the default of 1 each action is looked at once. The root is not evaluated, and
nothing is searched below its children. Evaluations of one state wait for each other; those of different states do not.
"""

from __future__ import annotations

from typing import Any

from exact.search.base import Decision, Done, Need, Selection, Wait
from exact.search.rules.final import most_likely, rank_unseen
from exact.search.rules.halving import Phase, begin, following
from exact.search.rules.select import follow
from exact.search.tree import Edge, Node, Tree
from exact.search.work import Work
from exact.text import counted


class FlatHalving(Work):
    """Flat sequential halving.

    iterations: evaluations of children for each commit. most: number of arms to begin with, by prior; None: all.
    """

    def __init__(self, *, most: int | None = None, **more: Any) -> None:
        super().__init__(**more)
        self.most = most

    def replan(self, tree: Tree, left: int | None) -> None:
        """Set the number of further iterations that the budget pays for; None: all that are allowed. It counts from the next phase on."""
        tree.affordable = None if left is None else tree.iterations + left

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next pull, or return the reason if there is none."""
        if not tree.allowed:
            tree.allowed = self.iterations
        root = tree.root
        if root.closed or root.leaf:
            return _finish(tree, root.closed or "the episode has ended")
        if root.pending:
            return Wait()
        if tree.iterations + root.in_flight >= tree.allowed:
            return _finish(tree, counted(tree.iterations, "iteration"))
        if not root.expansions or (root.refused and root.expansions == 1):
            return self.select_state(tree, [], root, "proposals", draw=root.expansions)
        return self._pull(tree, root)

    def decide(self, tree: Tree) -> Decision:
        """Return the arm with the highest mean of the last phase."""
        root, phase = tree.root, tree.phase
        pulled = [i for i, edge in enumerate(root.edges) if edge.visits and not edge.futile and not edge.unsearched]
        last = phase.actions if phase is not None and phase.root == root.id else ()
        order = sorted(pulled, key=lambda i: (i not in last, -_worth(root.edges[i]), -root.edges[i].prior, i))
        return self.commit(tree, rank_unseen(root, order) or most_likely(root), "the highest mean value of the last phase")

    def _pull(self, tree: Tree, root: Node) -> Selection | Wait | Done:
        """Return the next arm's step or evaluation. The next phase begins once all results of this one have arrived."""
        while True:
            phase = tree.phase
            if phase is not None and phase.root == root.id and (due := self._due(root, phase)):
                free = [i for i in due if not root.edges[i].in_flight]
                return self._arm(tree, root, free[0]) if free else Wait()
            if root.in_flight:
                return Wait()
            if (ended := self._next(tree, root)) is not None:
                return ended

    def _due(self, root: Node, phase: Phase) -> list[int]:
        """Return the arms that the phase still pulls, the least pulled first."""
        taken = {i: root.edges[i].visits + root.edges[i].in_flight - phase.before[i] for i in phase.actions}
        return phase.due(taken, [i for i in phase.actions if not self._pullable(root.edges[i])], phase.actions.index)

    def _arm(self, tree: Tree, root: Node, index: int) -> Selection:
        """Reserve one pull of an arm."""
        edge = root.edges[index]
        if edge.child is None:
            needs: tuple[Need, ...] = ("step", "value")
            return self.select_step(tree, [(root, edge)], index, needs=needs)
        child = follow(edge)
        return self.select_state(tree, [(root, edge)], child, "value", draw=child.evaluations)

    def _next(self, tree: Tree, root: Node) -> Selection | Wait | Done | None:
        """Begin the next phase. Return None if it has begun; otherwise the reason why not, or the proposals that are missing."""
        left = tree.allowed if tree.affordable is None else min(tree.allowed, tree.affordable)
        left -= tree.iterations
        if left < 1:
            return _finish(tree, f"{counted(tree.iterations, 'iteration')}: the budget pays for no more")
        ranked = [i for i, edge in enumerate(root.edges) if self._pullable(edge)]
        if not ranked:
            if not most_likely(root) and root.expansions <= self.retries:
                return self.select_state(tree, [], root, "proposals", draw=root.expansions)
            return _finish(tree, "every action was evaluated as often as allowed")
        ranked.sort(key=lambda i: (-_worth(root.edges[i]), -root.edges[i].prior, i))
        visits = [edge.visits for edge in root.edges]
        last = tree.phase if tree.phase is not None and tree.phase.root == root.id else None
        found = following(last, ranked, visits, left, up=True) if last is not None else None
        tree.phase = found or begin(root.id, ranked, visits, left, self.most or len(ranked))
        return None

    def _pullable(self, edge: Edge) -> bool:
        """Return whether an arm may be pulled once more."""
        return not edge.closed and (edge.child is None or follow(edge).evaluations < self.evaluations)


def _worth(edge: Edge) -> float:
    """Return the mean value of the states an arm led to; 0 before the first pull, so that priors decide."""
    total = sum(child.value_sum for child in edge.outcomes)
    count = sum(child.evaluations for child in edge.outcomes)
    return total / count if count else 0.0


def _finish(tree: Tree, reason: str) -> Wait | Done:
    """Return Done once nothing is in flight."""
    return Wait() if tree.open else Done(reason)
