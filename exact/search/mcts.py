"""Monte Carlo tree search: PUCT by default, UCT by choice.

One iteration, from `MCTS.ask` to `Work.tell`:

    select    MCTS._down follows the rule from the root; PUCT is computed in rules/select.py
    expand    MCTS._propose asks the policy on the second visit of a state
    evaluate  MCTS._down asks the value function on the first visit
    back up   Work.record_evaluation adds the value along the path by rules/backup.py

`MCTS.decide` then commits an action by rules/final.py. The root is evaluated too. An end of the episode is an estimate like any other: it
may be evaluated again, up to `evaluations` times, and is then exhausted.

Forecast of the states in which a search is likely to act next, for environments that are prepared while models answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

from exact.context import Evaluation
from exact.search.base import Decision, Done, Need, Selection, Stepped, Wait
from exact.search.rules.backup import Backup, back_up, reserve
from exact.search.rules.exhaust import exhausted_value, is_exhausted, reopen, settle
from exact.search.rules.final import (
    CLEARLY,
    LOWER_BOUND,
    NOISE,
    UNSEEN,
    FinalChoice,
    first_value,
    most_likely,
    most_promising,
    principal,
    rank_unseen,
)
from exact.search.rules.reevaluate import next_rival, record_score, reevaluation_count, reranked
from exact.search.rules.select import SelectionRule, follow, is_due, puct
from exact.search.rules.stop import clear_choice, confirmed_end, edges_to, unconfirmed_end
from exact.search.tree import Node, Open, Path, Tree
from exact.search.work import Work
from exact.text import counted

Expansion = Literal["lazy", "eager", "speculative"]
"""When a state is expanded. lazy: on its second visit. eager: right after its evaluation. speculative: at the same time as its
evaluation."""


class MCTS(Work):
    """Ask/tell MCTS. `iterations` are granted for each committed action; unused ones carry over to the next.

        rule           selection rule; by default PUCT with constant `c`
        final          final choice
        depth          maximum number of actions below the root
        expansion      see Expansion
        revisit        an end backs up its known value again (`repeat`), or is closed after `evaluations` evaluations (`exhaust`)
        think          prior in [0, 1] from which an action is committed without a search
        enough         value in [0, 1] from which a confirmed end stops the search
        plan           whether a decision is a whole path
        widening       scale of progressive widening: `ceil(scale * sqrt(N))` children at N visits (Coulom 2007, Chaslot et al. 2008)
        reevaluations  last iterations, reserved for the root's candidates within `z` errors of each other (rules/reevaluate.py)
        noise          lower bound on the assumed standard deviation of one evaluation

    The other parameters are those of Work.
    """

    def __init__(
        self,
        *,
        iterations: int,
        k: int,
        rule: SelectionRule | None = None,
        c: float = 0.5,
        final: FinalChoice = LOWER_BOUND,
        depth: int = 8,
        expansion: Expansion = "lazy",
        revisit: Literal["exhaust", "repeat"] = "exhaust",
        think: float | None = None,
        enough: float | None = None,
        plan: bool = False,
        widening: float | None = None,
        reevaluations: int = 0,
        z: float = 1.0,
        noise: float = NOISE,
        **more: Any,
    ) -> None:
        super().__init__(k=k, iterations=iterations, **more)
        self.rule, self.final, self.depth = rule or puct(c), final, depth
        self.expansion, self.revisit = expansion, revisit
        self.think, self.enough = think, enough
        self.plan, self.widening = plan, widening
        self.reevaluations, self.z, self.noise = reevaluations, z, noise
        self.after: tuple[Need, ...] = ("value",) if expansion == "lazy" else ("value", "proposals")
        self.stops = think is not None or enough is not None
        self.stepping: tuple[Need, ...] = ("step", *self.after)

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work of an iteration, or return the reason if there is none."""
        if not tree.allowed:
            tree.allowed = self.iterations
        root = tree.root
        if root.closed or root.leaf:
            return self._finish(tree, root.closed or "the episode has ended")
        if self.stops and (stopped := self._stopped(tree)) is not None:
            return stopped
        while tree.iterations + root.in_flight < tree.allowed:
            if self.reevaluations and (asked := self._reevaluate(tree)) is not None:
                return asked
            if (found := self._walk(tree)) is not None:
                return found
        return self.first_proposals(tree, "proposals" if self.widening is None else "sample") or self._finish(
            tree, counted(tree.iterations, "iteration")
        )

    def decide(self, tree: Tree) -> Decision:
        """Return the final choice. An action that could not be searched wins if it clearly promises more than every searched one."""
        root = tree.root
        if self.enough is not None and (end := confirmed_end(tree, self.enough)) is not None:
            path = edges_to(tree, end) or []
            return self.commit(tree, path, "a confirmed end", plan=path if self.plan else ())
        order, others = self.final.order(tree, root), most_promising(root)
        if order and others and first_value(root, root.edges[others[0]]) > max(root.edges[i].q for i in order) + CLEARLY:
            return self.commit(tree, others, "could not be searched, but promises more than what was searched")
        if not order:
            return self.commit(tree, most_likely(root), "the highest prior: nothing was explored")
        plan, reason = principal(tree, self.final), self.final.reason
        if self.reevaluations and (scores := reranked(tree, order, self.z, self.noise)) is not None:
            order, plan, reason = scores, scores[:1], "the best of the close candidates after re-evaluation"
        if (ranked := rank_unseen(root, order))[0] != order[0]:
            order, plan, reason = ranked, ranked[:1], UNSEEN
        return self.commit(tree, order, reason, plan=plan if self.plan else ())

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """Return up to k states in which a step is likely next."""
        found = [*likely_steps(tree, self.rule, self.depth, self.backup, self.discount), *super().forecast(tree, k)]
        return list({node.id: node for node in found}.values())[:k]

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """Move the root along a committed action, and reopen edges that only the depth limit had exhausted."""
        retained = super().advance(tree, edge, observed)
        reopen(tree, self.backup, deeper=True)
        return retained

    def grant(self, tree: Tree) -> None:
        """Allow the iterations of the next commit, less those that the current plan counts for."""
        if self.plan:  # called at each step of a plan; the next search follows the last step
            tree.allowed = max(tree.allowed - self.iterations, tree.iterations)
        super().grant(tree)

    def _walk(self, tree: Tree) -> Selection | Wait | Done | None:
        """Descend from the root to work. None: the descent ended in a free backup or closed an edge."""
        return self._down(tree, *self._begin(tree))

    def _down(self, tree: Tree, node: Node, path: Path) -> Selection | Wait | Done | None:
        """Descend from a state, which `path` leads to, to work. None: the descent ended without work."""
        deepest = tree.root.depth + self.depth
        rule, widens = self.rule, self.widening is not None
        while True:
            if node.pending:
                return Wait()
            if node.evaluation is None:
                return self.select_state(tree, path, node, *self._state_needs(node, deepest))
            if node.depth >= deepest or (not node.expansions and node.leaf):
                return self._revisit(tree, path, node)
            if (widens or node.refused or not node.expansions) and (asked := self._propose(tree, path, node)) is not None:
                return asked
            index = rule(tree, node)
            if index < 0:
                return self._dead_end(tree, path, node)
            edge = node.edges[index]
            path.append((node, edge))
            child = edge.child
            if child is None or (tree.stochastic and is_due(tree, edge)):
                return Wait() if edge.in_flight else self._step(tree, path, index, node.depth + 1 < deepest)
            node = follow(edge) if edge.fate.others else child

    def _begin(self, tree: Tree) -> tuple[Node, Path]:
        """Return the start of a descent: the root, or the state in which the last one asked for proposals if it would lead there again."""
        resting, tree.resting = tree.resting, None
        if resting is None or tree.open or resting[0] != (tree.selections, tree.iterations, tree.root):
            return tree.root, []
        return resting[2], resting[1]

    def _state_needs(self, node: Node, deepest: int) -> tuple[Need, ...]:
        """Return the needs of a state that has no evaluation yet."""
        return self.after if not node.leaf and not node.expansions and node.depth < deepest else ("value",)

    def _step(self, tree: Tree, path: Path, index: int, expands: bool) -> Selection:
        """Reserve a step along the last edge of the path, with the needs of the state it leads to."""
        needs = self.stepping if expands else ("step", "value")
        if self.expansion == "speculative":
            return self.select_step(tree, path, index, needs=needs, together=True)
        return self.select_step(tree, path, index, needs=needs)

    def _propose(self, tree: Tree, path: Path, node: Node) -> Selection | None:
        """Ask the policy at the first expansion, once more after a refused action, and as progressive widening allows."""
        if self.widening is not None:
            wanted = max(1, math.ceil(self.widening * math.sqrt(max(node.visits, 1))))
            futile = sum(edge.futile for edge in node.edges)  # a refused action takes no slot
            if len(node.edges) - futile < wanted and node.expansions < 2 * (wanted + futile):
                return self.select_state(tree, path, node, "sample", draw=node.expansions)
            return None
        if node.expansions and (node.expansions > 1 or not node.refused):
            return None
        asked = self.select_state(tree, path, node, "proposals", draw=node.expansions)
        if len(tree.open) == 1:
            tree.resting = (tree.selections, tree.iterations, tree.root), path, node
        return asked

    def _revisit(self, tree: Tree, path: Path, node: Node) -> Selection | None:
        """Visit a state without children again: evaluate it once more, back up its known value, or close it as exhausted."""
        if node.evaluations < self.evaluations:
            return self.select_state(tree, path, node, "value", draw=node.evaluations)
        if (self.revisit == "repeat" or tree.stochastic) and not node.unseen:
            back_up(tree, path, node, node.value_sum / node.evaluations, rule=self.backup, discount=self.discount)
            return None
        edge = path[-1][1]
        if len(edge.outcomes) == 1 and node.unseen:
            edge.closed = "unseen: evaluated as often as allowed"  # not settled: nothing was proven
        elif len(edge.outcomes) == 1:
            edge.closed, edge.settled, edge.distance = "exhausted: evaluated as often as allowed", True, 1
        elif not self._close_exhausted(tree, path, "exhausted: evaluated as often as allowed"):
            back_up(tree, path, node, node.value_sum / node.evaluations, rule=self.backup, discount=self.discount)
        return None

    def _close_exhausted(self, tree: Tree, path: Path, reason: str) -> bool:
        """Close the last edge of a path if none of its outcomes has anything left to learn. Return whether it was closed."""
        edge, deepest = path[-1][1], tree.root.depth + self.depth
        if tree.stochastic or not is_exhausted(edge, evaluations=self.evaluations, deepest=deepest):
            return False
        edge.closed = reason
        settle(edge, discount=self.discount, deepest=deepest)
        return True

    def _dead_end(self, tree: Tree, path: Path, node: Node) -> Selection | Wait | Done | None:
        """Handle a state without a selectable edge: wait for one in flight, ask for more proposals at the root, or close the state."""
        if any(not edge.closed for edge in node.edges):
            return Wait()
        if self.widening is not None and node.expansions < 2 * (len(node.edges) + 1):  # the policy may know of others
            return self.select_state(tree, path, node, "sample", draw=node.expansions)
        if node is tree.root:
            if not self.final.order(tree, node) and node.expansions <= self.retries:
                return self.select_state(tree, path, node, "proposals", draw=node.expansions)
            return self._reevaluate(tree, early=True) or self._try_twice(tree) or self._finish(tree, "every action was tried")
        again, node.closed = node.closed, "exhausted: every action was tried"
        if not self._close_exhausted(tree, path, node.closed) and again:  # counts once more beside the outcomes still open
            back_up(tree, path, node, exhausted_value(node), rule=self.backup, discount=self.discount)
        return None

    def _try_twice(self, tree: Tree) -> Selection | None:
        """Take an action of the first root a second time if nobody has said that equal actions lead to equal states; None if all were."""
        once = (i for i, edge in enumerate(tree.root.edges) if edge.child is not None and sum(node.arrivals for node in edge.outcomes) == 1)
        index = next(once, None) if tree.presumed and not tree.stochastic and tree.root is tree.nodes[0] else None
        if index is None:
            return None
        return self.select_step(tree, [(tree.root, tree.root.edges[index])], index, needs=("step",))

    def _reevaluate(self, tree: Tree, *, early: bool = False) -> Selection | Wait | None:
        """Evaluate one of the root's close candidates again, at the end of the search. None: they are separated, or it is too soon.

        Wait while each of them is being evaluated: the remaining iterations are reserved for them. early: the search ends with iterations
        left over because every action was tried.
        """
        root = tree.root
        late = tree.allowed - tree.iterations - root.in_flight <= self.reevaluations
        if not self.reevaluations or not root.visited or not (late or early) or reevaluation_count(tree) >= self.reevaluations:
            return None
        index = next_rival(tree, self.final.order(tree, root), self.z, self.noise)
        if index is None or isinstance(index, Wait):
            return index
        edge = root.edges[index]
        child = follow(edge)
        return self.select_state(tree, [(root, edge)], child, "value", draw=child.evaluations, reevaluates=True)

    def record_reevaluation(self, tree: Tree, node: Node, evaluation: Evaluation) -> None:
        """Record an evaluation that re-evaluates a close candidate."""
        record_score(tree, node, evaluation, max(tree.noise, self.noise))

    # --- ending

    def _finish(self, tree: Tree, reason: str) -> Wait | Done:
        """Return Done once nothing is in flight."""
        return Wait() if tree.open else Done(reason)

    def _stopped(self, tree: Tree) -> Selection | Done | Wait | None:
        """Return Done if the search can stop early, or the evaluation that is needed to decide that. None: the search continues.

        Work in flight is waited for: it is paid for, and a confirmation may change the decision.
        """
        if self.think is not None and (reason := clear_choice(tree, self.think)):
            return self._finish(tree, reason)
        if self.enough is not None:
            if confirmed_end(tree, self.enough) is not None:
                return self._finish(tree, "an end was good enough, and confirmed")
            if tree.iterations + tree.root.in_flight < tree.allowed and (end := unconfirmed_end(tree, self.enough)) is not None:
                return self.select_state(tree, self._path(tree, end), end, "value", draw=end.evaluations, confirms=True)
        return None

    def _path(self, tree: Tree, node: Node) -> Path:
        """Return the path from the root to a node below it."""
        path: Path = []
        while node is not tree.root:
            assert node.parent is not None
            path.append((node.parent, node.parent.edges[node.via]))
            node = node.parent
        return path[::-1]


def likely_steps(tree: Tree, rule: SelectionRule, depth: int, backup: Backup, discount: float) -> Iterator[Node]:
    """Yield the states in which a step is likely next, the likeliest first, some more than once. Changes nothing.

    They are those with proposals in flight; then the one to which the rule leads if the evaluations in flight turn out low, as things are
    now, and if they turn out high. A low one comes first: after a high one the search continues from the state in which an environment is.
    depth: the maximum number of actions below the root. backup, discount: as the search backs up.
    """
    for work in tree.open.values():
        if "proposals" in work.left or "sample" in work.left:
            yield work.target if work.target is not None else tree.nodes[work.selection.node]
    awaited = [work for work in tree.open.values() if work.target is not None and "value" in work.left]
    low, high = sorted((tree.low, tree.high))
    cases: list[AbstractContextManager[None]] = [nullcontext()]
    if awaited:
        if_low, if_high = (_supposed(tree, awaited, value, backup, discount) for value in (low, high))
        cases = [if_low, *cases, if_high]
    for case in cases:
        with case:
            likely = _next_step(tree, rule, depth)
        if likely is not None:
            yield likely


def _next_step(tree: Tree, rule: SelectionRule, depth: int) -> Node | None:
    """Return the state in which the rule takes a step as things are. None if it leads to an end."""
    deepest, node = tree.root.depth + depth, tree.root
    while not (node.leaf or node.closed or node.depth >= deepest):
        index = rule(tree, node) if node.expansions and not node.pending else -1
        child = node.edges[index].child if index >= 0 else None
        if child is None:
            return node
        node = follow(node.edges[index])
    return None


@contextmanager
def _supposed(tree: Tree, awaited: list[Open], value: float, backup: Backup, discount: float) -> Iterator[None]:
    """Suppose for the block that the evaluations in flight had come, all with one value."""
    nodes = {node for work in awaited for node in (work.target, *(above for above, _ in work.path)) if node is not None}
    edges = {edge for work in awaited for _, edge in work.path}
    states = [(node, (node.visits, node.backups, node.in_flight, node.pending, node.evaluations), node.value_sum) for node in nodes]
    taken = [(edge, (edge.visits, edge.in_flight), (edge.total, edge.q)) for edge in edges]
    counters = tree.iterations, tree.low, tree.high
    try:
        for work in awaited:
            assert work.target is not None
            reserve(work.path, None if work.selection.edge is not None else work.target, -1)
            work.target.pending, work.target.evaluations = False, work.target.evaluations + 1
            work.target.value_sum += value
            back_up(tree, work.path, work.target, value, rule=backup, discount=discount)
        yield
    finally:
        for node, counts, value_sum in states:
            node.visits, node.backups, node.in_flight, node.pending, node.evaluations = counts
            node.value_sum = value_sum
        for edge, numbers, values in taken:
            edge.visits, edge.in_flight = numbers
            edge.total, edge.q = values
        tree.iterations, tree.low, tree.high = counters
