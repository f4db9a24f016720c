"""Base class of the algorithms: the handling of results that all of them share. The algorithms differ in the work that they ask for."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from exact.context import Evaluation, Proposal
from exact.search.base import (
    Alternative,
    Batched,
    Compared,
    Decision,
    Diverged,
    Done,
    Failure,
    Need,
    Proposed,
    Result,
    Rolled,
    Selection,
    Stepped,
    Valued,
    Wait,
)
from exact.search.rules.backup import Backup, back_up, generator, mean, record_noise, reserve
from exact.search.rules.candidates import Candidates, best, tempered
from exact.search.rules.exhaust import expect_chance
from exact.search.rules.final import HARMLESS, UNJUDGED, harmless_first, knows_nothing, most_likely
from exact.search.rules.merge import Merging, merge, record_end, shared_value
from exact.search.rules.validate import validate
from exact.search.tree import Edge, Edges, Node, Open, OutageRecord, Path, SearchError, Tree


class Work:
    """Base class of the algorithms: reservations, results, failures, moves of the root. It is stateless; all state is in the tree.

    k: distinct proposals at an expansion. retries: how often failed work is repeated. iterations:
    number granted for each committed action. evaluations: maximum number of evaluations of one state.
    """

    simulates = True

    def __init__(
        self,
        *,
        k: int,
        retries: int = 2,
        iterations: int = 1,
        evaluations: int = 1,
        backup: Backup = mean,
        discount: float = 1.0,
        merging: Merging = "siblings",
        candidates: Candidates = best,
        temperature: float = 1.0,
    ) -> None:
        self.k, self.retries, self.iterations, self.evaluations = k, retries, iterations, evaluations
        self.backup, self.discount, self.merging = backup, discount, merging
        self.candidates, self.temperature = candidates, temperature

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        """Reserve the next work, or return the reason if there is none."""
        raise NotImplementedError

    def decide(self, tree: Tree) -> Decision:
        """Return the action or plan to commit now."""
        raise NotImplementedError

    # --- making selections

    def select_step(
        self, tree: Tree, path: Path, index: int, *, needs: tuple[Need, ...] = ("step", "value"), together: bool = False, depth: int = 0
    ) -> Selection:
        """Reserve a step along the last edge of the path, edge `index` of its node, and the other needs of the state it leads to."""
        edge = path[-1][1]
        again = edge.child is not None
        selection = Selection(
            id=tree.selections, node=path[-1][0].id, edge=index, needs=needs, k=self.k, again=again,
            together=together and not again, depth=depth,
        )  # fmt: skip
        return open_selection(tree, path, None, selection)

    def select_state(
        self,
        tree: Tree,
        path: Path,
        node: Node,
        *needs: Need,
        k: int | None = None,
        draw: int = 0,
        policy: int = 0,
        rivals: tuple[int, ...] = (),
        depth: int = 0,
        confirms: bool = False,
        reevaluates: bool = False,
    ) -> Selection:
        """Reserve work on a known state: an evaluation, proposals, a comparison of its children, or a rollout."""
        if tree.stochastic and "value" in needs:
            draw = _next_evaluation(tree, node)
        node.pending = True
        selection = Selection(
            id=tree.selections, node=node.id, needs=needs, k=self.k if k is None else k, draw=draw, policy=policy, rivals=rivals,
            depth=depth, confirms=confirms, reevaluates=reevaluates,
        )  # fmt: skip
        return open_selection(tree, path, node, selection)

    def first_proposals(self, tree: Tree, need: Need = "proposals") -> Selection | Wait | None:
        """Return the root's proposals if it lacks them: without them no action can be committed. They take no iteration."""
        root = tree.root
        if root.expansions:
            return None
        return Wait() if root.pending else self.select_state(tree, [], root, need)

    # --- results

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        """Take in one result. Raises SearchError if it does not fit the selection."""
        work = tree.open.get(selection.id)
        if work is None:
            raise _not_open(selection)
        left, target = work.left, work.target
        if target is not None and "value" in left and isinstance(result, Valued):  # isinstance last: a "no" of it takes longest
            if not 0.0 <= result.evaluation.value <= 1.0:
                validate(selection, result, target.id)
            left.remove("value")
            self.record_evaluation(tree, work.path, target, result.evaluation)
            if selection.confirms:
                tree.confirmed[target.id] = result.evaluation.value
            if selection.reevaluates:
                self.record_reevaluation(tree, target, result.evaluation)
        elif left[0] == "step" and isinstance(result, Stepped):
            self._stepped(tree, work, result)
        elif isinstance(result, Failure):
            self._failed(tree, work, result)
            left.clear()
        elif isinstance(result, Diverged):
            self._diverged(tree, work, result)
            left.clear()
        else:
            self._take_in(tree, work, result)
        if not work.left:
            self._end(tree, work)

    def _take_in(self, tree: Tree, work: Open, result: Result) -> None:
        """Take in a result other than a step, an evaluation or a failure."""
        matching, node = _matching_need(type(result), work.left), work.target
        if matching is None or node is None:
            raise SearchError(f"node {work.selection.node}: a {type(result).__name__} result does not fit {work.selection}")
        validate(work.selection, result, node.id)
        work.left.remove(matching)
        if isinstance(result, Proposed):
            drawn = "sample" in work.selection.needs
            self.expand(tree, node, result.proposals if drawn else self._candidates(tree, work.selection, result), drawn=drawn)
        elif isinstance(result, Rolled):
            self.record_evaluation(tree, work.path, node, result.evaluation)
        elif isinstance(result, Compared):
            self.compared(tree, work.path, node, work.selection.rivals, result)
        elif isinstance(result, Batched):
            for index, evaluation in zip(work.selection.rivals, result.evaluations, strict=True):
                if (child := node.edges[index].child) is not None:
                    self.record_evaluation(tree, [*work.path, (node, node.edges[index])], child, evaluation)

    def release(self, tree: Tree, selection: Selection) -> None:
        """Give a reservation back. Raises SearchError if the selection is not open."""
        self._end(tree, self._open(tree, selection))

    def _open(self, tree: Tree, selection: Selection) -> Open:
        """Return the record of an open selection. Raises SearchError if it is not open."""
        if selection.id not in tree.open:
            raise _not_open(selection)
        return tree.open[selection.id]

    def _end(self, tree: Tree, work: Open) -> None:
        """Close a selection and give its reservation back."""
        del tree.open[work.selection.id]
        stepping = work.selection.edge is not None
        reserve(work.path, None if stepping else work.target, -1)
        if work.target is not None:
            work.target.pending = bool(tree.open) and any(other.target is work.target for other in tree.open.values())

    def _stepped(self, tree: Tree, work: Open, result: Stepped) -> None:
        """Add the new state to the tree. It needs an evaluation unless it merges with a known state."""
        selection, (node, edge) = work.selection, work.path[-1]
        assert selection.edge is not None
        if selection.again and (known := next((each for each in edge.outcomes if is_outcome(each, result)), None)) is not None:
            known.arrivals += 1
            work.left = ["value"] if known.terminated and tree.stochastic else []  # ends look alike, whatever they are worth
            if work.left:
                work.draw = _next_evaluation(tree, known)
                work.target, known.pending = known, True
            return
        if selection.again:
            expect_chance(tree, self.backup)
        child = tree.add(node, selection.edge)
        fill(child, result)
        work.left.remove("step")
        leaf = child.leaf
        merging = self.merging
        if (
            merging != "none"
            and not leaf
            and not tree.stochastic
            and merge(tree, work.path, child, edge, merging, rule=self.backup, discount=self.discount)
        ):
            work.left.clear()
            return
        work.target, child.pending = child, True
        if leaf:
            work.left = [need for need in work.left if need in ("value", "rollout")]
            work.left = ["value" if need == "rollout" else need for need in work.left]

    def record_evaluation(self, tree: Tree, path: Path, node: Node, evaluation: Evaluation) -> None:
        """Count one evaluation of a state and back it up. Several ends with the same answer back up the mean of all their evaluations."""
        if node.evaluations or evaluation.samples:
            record_noise(tree, node, evaluation)
        if node.evaluation is None:
            node.evaluation = evaluation
            if node.terminated:
                record_end(tree, node)
        node.evaluations += 1
        node.value_sum = node.value_sum + evaluation.value if node.evaluations > 1 else evaluation.value  # one number object, not two
        value = evaluation.value if not node.terminated else shared_value(tree, node, evaluation.value)
        back_up(tree, path, node, value, rule=self.backup, discount=self.discount)

    def expand(self, tree: Tree, node: Node, proposals: Sequence[Proposal], *, drawn: bool = False) -> None:
        """Merge proposals into a state's edges: a new action becomes an edge, a known one gains prior.

        drawn: whether the proposals are samples; the prior is then the share of the draws.
        """
        if drawn:
            for drawn_before in node.edges:
                drawn_before.prior *= max(1, node.expansions)
        node.expansions += 1
        if not node.edges and len({proposal.action.key for proposal in proposals}) == len(proposals) > 0:
            node.edges = Edges(node, proposals, normalised([proposal.prior for proposal in proposals]))
            return
        known = {edge.action.key: edge for edge in node.edges}
        for proposal in proposals:
            key = proposal.action.key
            if key in known:
                known[key].prior += proposal.prior
            else:
                known[key] = edge = Edge(proposal.action, proposal.prior, proposal.rationale)
                edge.writes = proposal.writes
        node.edges = list(known.values())  # by first arrival
        for edge, prior in zip(node.edges, normalised([edge.prior for edge in node.edges]), strict=True):
            edge.prior = prior

    def _candidates(self, tree: Tree, selection: Selection, result: Proposed) -> tuple[Proposal, ...]:
        """Return the proposals that become edges."""
        if self.candidates is best and self.temperature == 1.0 and len(result.proposals) <= selection.k:
            return result.proposals
        warm = tempered(result.proposals, self.temperature)
        return self.candidates(warm, selection.k, partial(generator, tree.seed, "candidates", selection.node, selection.draw))

    def compared(self, tree: Tree, path: Path, node: Node, rivals: Sequence[int], result: Compared) -> None:
        """Count each rival's score as an evaluation of its child. `path` leads to the node."""
        for index, score in zip(rivals, result.scores, strict=True):
            edge = node.edges[index]
            assert edge.child is not None
            self.record_evaluation(tree, [*path, (node, edge)], edge.child, Evaluation(value=score, rationale=result.rationale))

    def record_reevaluation(self, tree: Tree, node: Node, evaluation: Evaluation) -> None:
        """Record an evaluation that re-evaluates a close candidate. Does nothing by default."""

    # --- failures and divergences

    def _failed(self, tree: Tree, work: Open, failure: Failure) -> None:
        """Close an edge whose step failed, or a state and its edge, once the failure is permanent or was repeated too often."""
        node = work.target
        if node is None:
            edge = work.path[-1][1]
            if self._gives_up(edge, failure):
                edge.closed = f"{failure.kind}: {failure.reason}"
                edge.futile, edge.unsearched = failure.kind == "action", failure.kind != "action"
                work.path[-1][0].refused |= edge.futile
                tree.iterations += 1
                self._note(tree, failure, OutageRecord(work.path[-1][0], None, edge, edge.closed, 1))
        elif failure.kind == "action" and node.edges and work.left[0] in ("proposals", "sample"):
            node.expansions += 1  # the policy has nothing to add; its earlier proposals remain
        elif self._gives_up(node, failure):
            node.closed = f"{failure.kind}: {failure.reason}"
            uncounted = "value" in work.left or "value" not in work.selection.needs  # otherwise it was counted on its evaluation
            charged = uncounted and tree.iterations < tree.allowed
            tree.iterations += charged
            edge_there = work.path[-1][1] if work.path else None
            if edge_there is not None:
                edge_there.closed = node.closed
                edge_there.unsearched = not edge_there.visits
            self._note(tree, failure, OutageRecord(node, node, edge_there, node.closed, charged))

    def _note(self, tree: Tree, failure: Failure, broken: OutageRecord) -> None:
        """Record the closings by infrastructure failures. See rules/outage.py."""
        if failure.kind in ("model", "environment"):
            tree.outages.append(broken)

    def _gives_up(self, target: Node | Edge, failure: Failure) -> bool:
        """Count a failure, and return whether it is permanent or exceeds the retries."""
        target.failures += 1
        return failure.kind in ("action", "drifted") or target.failures > self.retries

    def _diverged(self, tree: Tree, work: Open, result: Diverged) -> None:
        """Add the reached state as a further outcome of the edge, or count it again if it is a known outcome."""
        node = tree.nodes[result.node]
        edge = node.edges[result.edge]
        known = next((child for child in edge.outcomes if is_outcome(child, result.stepped)), None)
        if known is None:
            known = tree.add(node, result.edge)
            fill(known, result.stepped)
        else:
            known.arrivals += 1
        target = work.target if work.target is not None else work.path[-1][1]
        target.failures += 1
        if tree.stochastic:  # the way is tried again; only repeated bad luck counts
            known.arrivals -= 1  # of the replays that arrived nobody knows
            if target.failures > self.retries:
                target.failures, tree.iterations = 0, tree.iterations + 1
            return
        if target.failures > self.retries:
            reason = f"drifted: the path to it leads elsewhere too often (node {node.id}, {edge.action})"
            self._close(work, reason)
        tree.iterations += 1

    def _close(self, work: Open, reason: str) -> None:
        """Close the state and the edge of a selection."""
        if work.target is not None:
            work.target.closed = reason
        if work.path:
            work.path[-1][1].closed = reason
            work.path[-1][1].unsearched = not work.path[-1][1].visits

    # --- moving on

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        """Move the root along a committed action. Return whether its subtree was retained."""
        taken = tree.root.edges[edge]
        foreseen = taken.child
        known = next((node for node in taken.outcomes if not node.leaf and is_outcome(node, observed)), None)
        if known is None:
            taken.child, taken.others = None, ()
            tree.root = tree.add(tree.root, edge)
            fill(tree.root, observed)
            if foreseen is not None:
                _warm_start(tree.root, foreseen, observed)
        else:
            taken.others = tuple(node for node in taken.outcomes if node is not known)
            taken.child, known.parent, known.via = known, tree.root, edge  # a merged state may have been reached by another path
            tree.root, known.closed = known, ""
        self.grant(tree)
        self._drop(tree)
        return known is not None

    def grant(self, tree: Tree) -> None:
        """Allow the iterations of the next commit. Unused ones remain."""
        tree.search_began = tree.iterations
        tree.allowed += self.iterations

    def _drop(self, tree: Tree) -> None:
        """Release open work outside the new root's subtree, and shorten the paths of open work inside it."""
        for work in list(tree.open.values()):
            below = next((i for i, (node, _) in enumerate(work.path) if node is tree.root), None)
            if below is None and work.target is not tree.root:
                self._end(tree, work)
            else:
                cut = len(work.path) if below is None else below
                reserve(work.path[:cut], None, -1)
                work.path = work.path[cut:]

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """Close a committed action that the live environment refused. The root stays, and is searched again before the next decision."""
        refused = tree.root.edges[edge]
        refused.closed, refused.futile = f"action: {reason}", True
        tree.root.refused, tree.resting = True, None
        self.grant(tree)

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """Return the states along the most visited path, the deepest first."""
        node, found = tree.root, list[Node]()
        while node.edges and not node.leaf:
            found.append(node)
            below = [edge.child for edge in node.edges if edge.child and not edge.closed]
            if not below:
                break
            node = max(below, key=lambda child: child.visits)
        return found[::-1][:k]

    def alternatives(self, node: Node) -> tuple[Alternative, ...]:
        """Return the statistics of a node's actions."""
        return tuple(
            Alternative(edge=i, action=edge.action.key, prior=edge.prior, visits=edge.visits, value=edge.value)
            for i, edge in enumerate(node.edges)
        )

    def commit(self, tree: Tree, order: Sequence[int], reason: str, *, plan: Sequence[int] = ()) -> Decision:
        """Return the decision for the first edge of an order, or for a whole plan.

        If no evaluation could be read, it is for the likeliest action. A write that is worth nothing gives way (`harmless_first`). Raises
        SearchError if there is none.
        """
        if knows_nothing(tree):
            order, plan, reason = most_likely(tree.root), (), UNJUDGED
        edges = tuple(plan) or tuple(order[:1])
        if (harmless := harmless_first(tree.root, edges, unjudged=reason == UNJUDGED)) is not None:
            edges, reason = (harmless,), HARMLESS
        if not edges:
            raise SearchError("no action is left to commit: every proposal was refused, led nowhere or failed")
        return Decision(edges=edges, reason=reason, value=tree.root.edges[edges[0]].value, alternatives=self.alternatives(tree.root))


def open_selection(tree: Tree, path: Path, target: Node | None, selection: Selection) -> Selection:
    """Open a selection and count it along its path."""
    tree.selections += 1
    reserve(path, target, +1)
    tree.open[selection.id] = Open(selection, path, target, list(selection.needs), selection.draw)
    return selection


def _next_evaluation(tree: Tree, node: Node) -> int:
    """Return the number of the next evaluation of a state that is evaluated whenever a step leads to it. None is given twice."""
    number = max(tree.evaluating.get(node.id, 0), node.evaluations + node.pending)
    tree.evaluating[node.id] = number + 1
    return number


def fill(node: Node, result: Stepped) -> None:
    """Write a step's result into the state it led to."""
    node.fingerprint, node.observation, node.screenshot = result.fingerprint, result.observation, result.screenshot
    node.terminated, node.blocked, node.unreached, node.beyond = result.terminated, result.blocked, result.unreached, result.beyond
    node.arrivals += 1


def normalised(priors: list[float]) -> list[float]:
    """Return the priors of a node's edges, scaled to sum to 1."""
    total = sum(priors)
    return [prior / total for prior in priors] if abs(total - 1.0) > _ROUNDING else priors


def is_outcome(node: Node, result: Stepped) -> bool:
    """Return whether a state is the one that a step reached."""
    return node.fingerprint == result.fingerprint and node.terminated == result.terminated and node.beyond == result.beyond


def _warm_start(child: Node, foreseen: Node, observed: Stepped) -> None:
    """Carry over the parts of a dropped state that still hold when another state arrived than was predicted."""
    if foreseen.terminated and observed.terminated:
        child.evaluation, child.evaluations, child.value_sum = foreseen.evaluation, foreseen.evaluations, foreseen.value_sum
    if not child.leaf:
        keep_edges(child, foreseen.edges)


def keep_edges(node: Node, edges: Sequence[Edge]) -> None:
    """Make actions of another state untried actions of a new one, but for those that must not be committed."""
    known = [edge for edge in edges if not edge.futile]
    node.edges = [Edge(edge.action, edge.prior, edge.rationale) for edge in known]
    for edge, before in zip(node.edges, known, strict=True):
        edge.writes = before.writes


_ROUNDING = 1e-12
"""Difference from 1 of a sum of priors that is due to rounding."""


def _not_open(selection: Selection) -> SearchError:
    return SearchError(f"node {selection.node}: selection {selection.id} is not open: all its results have arrived, or it was released")


_ANSWER: dict[Need, type[msgspec.Struct]] = {
    "step": Stepped,
    "value": Valued,
    "proposals": Proposed,
    "sample": Proposed,
    "comparison": Compared,
    "batch": Batched,
    "rollout": Rolled,
}


def _matching_need(kind: type[msgspec.Struct], left: Sequence[Need]) -> Need | None:
    """Return the open need that a result of this type meets. None if there is none, or if the step comes first."""
    for need in left:
        if _ANSWER[need] is kind:
            return need
        if need == "step":
            break
    return None
