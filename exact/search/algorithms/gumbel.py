"""Gumbel search, for budgets too small to try every action twice (Danihelka et al. 2022, "Policy improvement by planning with Gumbel").

At the root the m actions with the highest `g + logits + sigma(q)` are halved sequentially (rules/halving.py); g is Gumbel noise times
`scale` (0 by default: nothing is explored at test time). Below the root each state follows its improved policy (rules/improve.py). The
action with the highest `g + logits + sigma(q)` of the last phase is committed. q: values below an action; logits: logarithm of its prior.

One iteration backs up one value. All visits of a phase may be in flight at once; only the next visit of the same action waits. The next
phase is planned once all results have arrived, from the iterations left then, so a changed budget and a retained subtree are counted.

`halving="visits"` is mctx's convention: actions are chosen at each visit, phases are as long as the first budget says, and the choice is
between the most visited. With `sigma=by_visits()`, m=16 and `revisit="repeat"` the visits are those of `mctx.gumbel_muzero_policy`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

from exact.search.base import Done, Selection, Wait
from exact.search.mcts import MCTS
from exact.search.rules.backup import uniform
from exact.search.rules.final import FinalChoice
from exact.search.rules.halving import Phase, begin, considered, following
from exact.search.rules.improve import Sigma, by_noise, improved, scores
from exact.search.rules.select import follow, is_due
from exact.search.tree import Node, Tree
from exact.text import counted

Halving = Literal["phases", "visits"]
"""When actions are chosen. phases: when a phase begins. visits: at each visit, by the values known then (mctx)."""


class Gumbel(MCTS):
    """Gumbel search.

    iterations: at least 4, the root's own evaluation included. considered: m; None: as many, up to 16, as the iterations allow
    (halving.considered). scale: of the Gumbel noise, which is keyed by (seed, root, edge). The other parameters are those of MCTS.
    """

    def __init__(
        self, *, sigma: Sigma | None = None, considered: int | None = None, scale: float = 0.0, halving: Halving = "phases", **more: Any
    ) -> None:
        self.sigma = sigma if sigma is not None else by_noise()
        self.considered, self.scale, self.late = considered, scale, halving == "visits"
        final = FinalChoice(self._order, "the highest prior and value of those that were left")
        super().__init__(rule=improved(self.sigma), final=final, **more)

    def replan(self, tree: Tree, left: int | None) -> None:
        """Set the number of further iterations that the budget pays for; None: all that are allowed. It counts from the next phase on."""
        tree.affordable = None if left is None else tree.iterations + left

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next visit of the current phase, or return the reason if there is none."""
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
                return found
        return self.first_proposals(tree) or self._finish(tree, counted(tree.iterations, "iteration"))

    # --- the root

    def _root(self, tree: Tree, root: Node) -> Selection | Wait | None:
        """Return the work needed before any phase: the root's evaluation and its actions."""
        if root.pending:
            return Wait()
        if root.evaluation is None:
            return self.select_state(tree, [], root, *self._state_needs(root, root.depth + self.depth))
        return self._propose(tree, [], root)

    def _phase(self, tree: Tree, root: Node) -> Selection | Wait | Done | None:
        """Return the next visit of the phase. The next phase begins once all results of this one have arrived."""
        phase = tree.phase
        if phase is not None and phase.root == root.id and (due := self._due(tree, root, phase)):
            for index in due:
                if not isinstance(found := self._visit(tree, root, index), Wait):
                    return found
            return Wait()
        return Wait() if root.in_flight else self._next(tree, root)

    def _due(self, tree: Tree, root: Node, phase: Phase) -> list[int]:
        """Return the actions that the phase still visits, the least visited first."""
        taken = {i: root.edges[i].visits + root.edges[i].in_flight - phase.before[i] for i in phase.actions}
        closed = [i for i in phase.actions if root.edges[i].closed]
        rank = self._scores(tree, root) if self.late else []
        return phase.due(taken, closed, lambda i: -rank[i] if self.late else phase.actions.index(i))

    def _visit(self, tree: Tree, root: Node, index: int) -> Selection | Wait | Done | None:
        """Descend through one action of the root."""
        edge = root.edges[index]
        if edge.child is not None and not is_due(tree, edge):
            return self._down(tree, follow(edge), [(root, edge)])
        return Wait() if edge.in_flight else self._step(tree, [(root, edge)], index, self.depth > 1)

    def _next(self, tree: Tree, root: Node) -> Selection | Wait | Done | None:
        """Begin the next phase. Return None if it has begun."""
        left = tree.allowed if tree.affordable is None else min(tree.allowed, tree.affordable)
        left -= tree.iterations
        if left < 1:
            return self._finish(tree, f"{counted(tree.iterations, 'iteration')}: the budget pays for no more")
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
        """Return `g + logits + sigma(q)` of each edge of the root."""
        found = scores(tree, root, self.sigma)
        return [score + self.scale * gumbel(tree, root, i) for i, score in enumerate(found)] if self.scale else found

    # --- the end

    def _order(self, tree: Tree, node: Node) -> list[int]:
        """Return the indices of the visited edges that may be committed, best first.

        At the root, those of the last phase come before the others. A settled edge is never dropped.
        """
        possible = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
        if not possible:
            return []
        rank = self._scores(tree, node) if node is tree.root else scores(tree, node, self.sigma)
        left = self._left(node, tree.phase) if tree.phase is not None and tree.phase.root == node.id else set(possible)
        return sorted(possible, key=lambda i: (i not in left and not node.edges[i].settled, -rank[i], i))

    def _left(self, node: Node, phase: Phase) -> set[int]:
        """Return the actions of the last phase; by mctx's convention only the most visited of them."""
        visits = {i: node.edges[i].visits - phase.before[i] for i in phase.actions}
        most = max(visits.values())
        return {i for i in phase.actions if visits[i] == most} if self.late else set(phase.actions)


def gumbel(tree: Tree, node: Node, index: int) -> float:
    """Return one draw of the standard Gumbel distribution for an edge: `-ln(-ln u)`."""
    u = uniform(tree.seed, "gumbel", node.id, index)
    return -math.log(-math.log(min(max(u, 2.0**-64), 1 - 2.0**-53)))
