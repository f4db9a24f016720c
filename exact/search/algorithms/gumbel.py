"""Gumbel search: for budgets so small that not every action can be tried twice (Danihelka et al. 2022, "Policy improvement by planning
with Gumbel").

At the root the m actions of the highest `g + logits + sigma(q)` are halved sequentially (halving.py), g being Gumbel noise times `scale`
(0 by default: at test time there is nothing to explore for). Below, each state follows its improved policy (improve.py). Committed is
the highest `g + logits + sigma(q)` of the last phase. q: values below an action; logits: of its prior.

One iteration backs up one value. All visits of a phase may be in flight at once: only the next visit of the same action waits. The next
phase is planned when all have come, from the iterations left then, so a budget that was replanned, or a kept subtree, is counted in.

`halving="visits"` is mctx's convention: actions are chosen at each visit, phases are as long as the first budget says, and the choice
is between the most visited. With `sigma=by_visits()`, m=16 and `revisit="repeat"` visits are those of `mctx.gumbel_muzero_policy`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from exact.search.base import Done, Selection, Wait
from exact.search.mcts import MCTS
from exact.search.rules.draw import uniform
from exact.search.rules.final import FinalChoice
from exact.search.rules.halving import Phase, begin, considered, following
from exact.search.rules.improve import Sigma, by_noise, improved, scores
from exact.search.rules.select import follow
from exact.search.tree import Node, Tree

Halving = Literal["phases", "visits"]
"""When actions are chosen. phases: when a phase begins. visits: at each visit, by what is known then (mctx)."""


class Gumbel(MCTS):
    """iterations: of 4 and more; those that the root's own judgement takes included. considered: m; None: as many, up to 16, as the
    iterations allow (halving.considered). scale: of the Gumbel noise, drawn by (seed, root, edge). The rest is MCTS's."""

    def __init__(
        self, *, sigma: Sigma | None = None, considered: int | None = None, scale: float = 0.0, halving: Halving = "phases", **more: Any
    ) -> None:
        self.sigma = sigma if sigma is not None else by_noise()
        self.considered, self.scale, self.late = considered, scale, halving == "visits"
        final = FinalChoice(self._order, _alone, "the highest prior and value of those that were left")
        super().__init__(rule=improved(self.sigma), final=final, **more)

    def replan(self, tree: Tree, left: int | None) -> None:
        """How many more iterations can be paid for; None: all that are allowed. Counts from the next phase on."""
        tree.affordable = None if left is None else tree.iterations + left

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        if not tree.allowed:
            tree.allowed = self.iterations
        root = tree.root
        if root.closed or root.leaf:
            return self._finish(tree, root.closed or "the episode has ended")
        if (stopped := self._stopped(tree)) is not None:
            return stopped
        while tree.iterations + root.in_flight < tree.allowed:
            if (asked := self._reevaluate(tree)) is not None:
                return asked
            found = self._root(tree, root) or self._phase(tree, root)
            if found is not None:
                return self._resample(tree) if isinstance(found, Wait) else found
        return self._finish(tree, f"{tree.iterations} iterations")

    # --- the root

    def _root(self, tree: Tree, root: Node) -> Selection | Wait | None:
        """What must be known before any phase: the root's value and its actions."""
        if root.pending:
            return Wait()
        if root.evaluation is None:
            return self.select_state(tree, [], root, *self._state_needs(root, root.depth + self.depth))
        return self._propose(tree, [], root)

    def _phase(self, tree: Tree, root: Node) -> Selection | Wait | Done | None:
        """The next visit of the phase; that of the next phase, once all results of this one have come."""
        phase = tree.phase
        if phase is not None and phase.root == root.id and (due := self._due(tree, root, phase)):
            for index in due:
                if not isinstance(found := self._visit(tree, root, index), Wait):
                    return found
            return Wait()
        return Wait() if root.in_flight else self._next(tree, root)

    def _due(self, tree: Tree, root: Node, phase: Phase) -> list[int]:
        taken = {i: root.edges[i].visits + root.edges[i].in_flight - phase.before[i] for i in phase.actions}
        closed = [i for i in phase.actions if root.edges[i].closed]
        rank = self._scores(tree, root) if self.late else []
        return phase.due(taken, closed, lambda i: -rank[i] if self.late else phase.actions.index(i))

    def _visit(self, tree: Tree, root: Node, index: int) -> Selection | Wait | Done | None:
        """One iteration through an action."""
        edge = root.edges[index]
        if edge.child is not None:
            return self._down(tree, follow(edge), [(root, edge)])
        return Wait() if edge.in_flight else self._step(tree, [(root, edge)], index, self.depth > 1)

    def _next(self, tree: Tree, root: Node) -> Selection | Wait | Done | None:
        """Begin the next phase; None: it has begun."""
        left = tree.allowed if tree.affordable is None else min(tree.allowed, tree.affordable)
        left -= tree.iterations
        if left < 1:
            return self._finish(tree, f"{tree.iterations} iterations: the budget pays for no more")
        rank, visits = self._scores(tree, root), [edge.visits for edge in root.edges]
        ranked = sorted((i for i, edge in enumerate(root.edges) if not edge.closed), key=lambda i: -rank[i])
        if not ranked:
            return self._dead_end(tree, [], root)
        last = tree.phase if tree.phase is not None and tree.phase.root == root.id else None
        found = following(last, ranked, visits, left, fixed=self.late) if last is not None else None
        first = self.considered or considered(left, len(ranked))
        tree.phase = found or begin(root.id, ranked, visits, left, first, late=self.late)
        return None

    def _scores(self, tree: Tree, root: Node) -> list[float]:
        """`g + logits + sigma(q)` of each edge of the root."""
        found = scores(tree, root, self.sigma)
        return [score + self.scale * gumbel(tree, root, i) for i, score in enumerate(found)] if self.scale else found

    # --- the end

    def _order(self, tree: Tree, node: Node) -> list[int]:
        """Indices of the visited edges that may be committed, best first; at the root those that the last phase left before the others.

        An edge with nothing more to learn below is never dropped.
        """
        possible = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
        if not possible:
            return []
        rank = self._scores(tree, node) if node is tree.root else scores(tree, node, self.sigma)
        left = self._left(node, tree.phase) if tree.phase is not None and tree.phase.root == node.id else set(possible)
        return sorted(possible, key=lambda i: (i not in left and not node.edges[i].settled, -rank[i], i))

    def _left(self, node: Node, phase: Phase) -> set[int]:
        """The actions that the last phase was between: as mctx chooses, only those that it visited most."""
        visits = {i: node.edges[i].visits - phase.before[i] for i in phase.actions}
        most = max(visits.values())
        return {i for i in phase.actions if visits[i] == most} if self.late else set(phase.actions)


def gumbel(tree: Tree, node: Node, index: int) -> float:
    """One draw of the standard Gumbel distribution for an edge: `-ln(-ln u)`."""
    u = uniform(tree.seed, "gumbel", node.id, index)
    return -math.log(-math.log(min(max(u, 2.0**-64), 1 - 2.0**-53)))


def _alone(tree: Tree, node: Node, left: int) -> bool:
    """Any score may still change, so the choice is settled only where there is none."""
    return len([edge for edge in node.edges if not edge.futile]) == 1
