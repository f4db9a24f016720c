"""What every algorithm does with the results it is told. The algorithms differ in what they ask."""

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
from exact.search.rules.answers import pooled_value, record_end
from exact.search.rules.backup import Backup, back_up, mean, reserve
from exact.search.rules.candidates import Candidates, best, tempered
from exact.search.rules.draw import generator
from exact.search.rules.merge import Merging, merge
from exact.search.rules.noise import record_noise
from exact.search.rules.schedule import Branching, constant
from exact.search.rules.validate import validate
from exact.search.tree import Edge, Node, Open, OutageRecord, Path, SearchError, Tree


class Work:
    """Base of the algorithms: reservations, results, failures, the move of the root. Holds no state: all of it is in the tree.

    k: distinct proposals at an expansion (`branching` says how many at which depth). retries: how often failed work is asked for
    again. iterations: granted for each committed action. evaluations: how often one state may be judged.
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
        branching: Branching = constant,
        candidates: Candidates = best,
        temperature: float = 1.0,
    ) -> None:
        self.k, self.retries, self.iterations, self.evaluations = k, retries, iterations, evaluations
        self.backup, self.discount, self.merging = backup, discount, merging
        self.branching, self.candidates, self.temperature = branching, candidates, temperature

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        raise NotImplementedError

    def decide(self, tree: Tree) -> Decision:
        raise NotImplementedError

    # --- making selections

    def select_step(
        self, tree: Tree, path: Path, index: int, *, needs: tuple[Need, ...] = ("step", "value"), together: bool = False, depth: int = 0
    ) -> Selection:
        """Reserve: take the last edge of the path, edge `index` of its node; then what else is needed of the state it leads to."""
        at = path[-1][0]
        k = self.k if self.branching is constant else self.branching(self.k, at.depth + 1 - tree.root.depth)
        selection = Selection(id=tree.selections, node=at.id, edge=index, needs=needs, k=k, together=together, depth=depth)
        return _reserved(tree, path, None, selection)

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
        """Reserve: judge a state, propose in it, compare what lies below, or roll out from it."""
        node.pending = True
        if k is None:
            k = self.k if self.branching is constant else self.branching(self.k, node.depth - tree.root.depth)
        selection = Selection(
            id=tree.selections, node=node.id, needs=needs, k=k, draw=draw, policy=policy, rivals=rivals, depth=depth, confirms=confirms,
            reevaluates=reevaluates,
        )  # fmt: skip
        return _reserved(tree, path, node, selection)

    # --- results

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        work = tree.open.get(selection.id)
        if work is None:
            raise _not_open(selection)
        left, target = work.left, work.target
        if isinstance(result, Valued) and target is not None and "value" in left:  # the commonest comes first
            if not 0.0 <= result.evaluation.value <= 1.0:
                validate(selection, result, target.id)
            left.remove("value")
            self.judge(tree, work.path, target, result.evaluation)
            if selection.confirms:
                tree.confirmed[target.id] = result.evaluation.value
            if selection.reevaluates:
                self.record_reevaluation(tree, target, result.evaluation)
        elif isinstance(result, Stepped) and left[0] == "step":
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
        """Take in what else was found out about a state."""
        matching, node = _matching_need(type(result), work.left), work.target
        if matching is None or node is None:
            raise SearchError(f"node {work.selection.node}: a {type(result).__name__} result does not fit {work.selection}")
        validate(work.selection, result, node.id)
        work.left.remove(matching)
        if isinstance(result, Proposed):
            drawn = "sample" in work.selection.needs
            self.expand(tree, node, result.proposals if drawn else self._candidates(tree, work.selection, result), drawn=drawn)
        elif isinstance(result, Rolled):
            self.judge(tree, work.path, node, result.evaluation)
        elif isinstance(result, Compared):
            self.compared(tree, node, work.selection.rivals, result)
        elif isinstance(result, Batched):
            for index, evaluation in zip(work.selection.rivals, result.evaluations, strict=True):
                if (child := node.edges[index].child) is not None:
                    self.judge(tree, [*work.path, (node, node.edges[index])], child, evaluation)

    def release(self, tree: Tree, selection: Selection) -> None:
        self._end(tree, self._open(tree, selection))

    def _open(self, tree: Tree, selection: Selection) -> Open:
        """Where an open selection works. Raises SearchError if it is not open."""
        if selection.id not in tree.open:
            raise _not_open(selection)
        return tree.open[selection.id]

    def _end(self, tree: Tree, work: Open) -> None:
        """Give the reservation back."""
        del tree.open[work.selection.id]
        stepping = work.selection.edge is not None
        reserve(work.path, None if stepping else work.target, -1)
        if work.target is not None:
            work.target.pending = False

    def _stepped(self, tree: Tree, work: Open, result: Stepped) -> None:
        """Place the new state. It wants its value, unless it is one that is known."""
        selection, (node, edge) = work.selection, work.path[-1]
        assert selection.edge is not None
        child = tree.add(node, selection.edge)
        fill(child, result)
        work.left.remove("step")
        leaf = child.terminated or child.blocked
        merging = self.merging
        if merging != "none" and not leaf and merge(tree, work.path, child, edge, merging, rule=self.backup, discount=self.discount):
            work.left.clear()
            return
        work.target, child.pending = child, True
        if leaf:
            work.left = [need for need in work.left if need in ("value", "rollout")]
            work.left = ["value" if need == "rollout" else need for need in work.left]

    def judge(self, tree: Tree, path: Path, node: Node, evaluation: Evaluation) -> None:
        """One judgement of a state: count it, and back it up. Ends with one answer back up the mean of all its evaluations."""
        if node.evaluations or evaluation.samples:
            record_noise(tree, node, evaluation)
        if node.evaluation is None:
            node.evaluation = evaluation
            if node.terminated:
                record_end(tree, node)
        node.evaluations += 1
        node.value_sum += evaluation.value
        value = evaluation.value if not node.terminated else pooled_value(tree, node)
        back_up(tree, path, node, value, rule=self.backup, discount=self.discount)

    def expand(self, tree: Tree, node: Node, proposals: Sequence[Proposal], *, drawn: bool = False) -> None:
        """Proposals for a state: what is new becomes an edge, what is known gains prior. `drawn`: the prior is the share of the draws."""
        if drawn:
            for drawn_before in node.edges:
                drawn_before.prior *= max(1, node.expansions)
        node.expansions += 1
        known = {edge.action.key: edge for edge in node.edges} if node.edges else {}
        for proposal in proposals:
            key = proposal.action.key
            if key in known:
                known[key].prior += proposal.prior
            else:
                known[key] = Edge(proposal.action, proposal.prior, proposal.rationale, proposal.writes)
        node.edges = list(known.values())  # in the order in which they came first; of the exact size, where appending leaves room
        normalise_priors(node.edges)

    def _candidates(self, tree: Tree, selection: Selection, result: Proposed) -> tuple[Proposal, ...]:
        """Which of the proposals become children."""
        if self.candidates is best and self.temperature == 1.0 and len(result.proposals) <= selection.k:
            return result.proposals
        warm = tempered(result.proposals, self.temperature)
        return self.candidates(warm, selection.k, partial(generator, tree.seed, "candidates", selection.node, selection.draw))

    def compared(self, tree: Tree, node: Node, rivals: Sequence[int], result: Compared) -> None:
        """Scores of siblings against each other: each counts as a judgement of its child."""
        for index, score in zip(rivals, result.scores, strict=True):
            edge = node.edges[index]
            assert edge.child is not None
            self.judge(tree, [(node, edge)], edge.child, Evaluation(value=score, rationale=result.rationale))

    def record_reevaluation(self, tree: Tree, node: Node, evaluation: Evaluation) -> None:
        """A judgement that is to tell rivals apart; for searches that ask for such."""

    # --- what went otherwise

    def _failed(self, tree: Tree, work: Open, failure: Failure) -> None:
        """Close what is refused for good or has failed too often: an edge whose step failed, or a state and the edge to it."""
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
            node.expansions += 1  # the policy has nothing to add: what it proposed before still stands
        elif self._gives_up(node, failure):
            node.closed = f"{failure.kind}: {failure.reason}"
            charged = "value" in work.left or "value" not in work.selection.needs  # else it was counted when it was judged
            tree.iterations += charged
            edge_there = work.path[-1][1] if work.path else None
            if edge_there is not None:
                edge_there.closed = node.closed
            self._note(tree, failure, OutageRecord(node, node, edge_there, node.closed, charged))

    def _note(self, tree: Tree, failure: Failure, broken: OutageRecord) -> None:
        """Remember what the infrastructure closed: see outage.py."""
        if failure.kind in ("model", "environment"):
            tree.outages.append(broken)

    def _gives_up(self, target: Node | Edge, failure: Failure) -> bool:
        target.failures += 1
        return failure.kind in ("action", "drifted") or target.failures > self.retries

    def _diverged(self, tree: Tree, work: Open, result: Diverged) -> None:
        """The environment is well, but elsewhere: the edge has one more outcome, or one that was seen before has come again."""
        node = tree.nodes[result.node]
        edge = node.edges[result.edge]
        known = next((child for child in edge.outcomes if _matches(child, result.stepped)), None)
        if known is None:
            known = tree.add(node, result.edge)
            fill(known, result.stepped)
        else:
            known.arrivals += 1
        target = work.target if work.target is not None else work.path[-1][1]
        target.failures += 1
        if target.failures > self.retries:
            reason = f"drifted: the way here leads elsewhere too often (node {node.id}, {edge.action})"
            self._close(work, reason)
        tree.iterations += 1

    def _close(self, work: Open, reason: str) -> None:
        if work.target is not None:
            work.target.closed = reason
        if work.path:
            work.path[-1][1].closed = reason
            work.path[-1][1].unsearched = not work.path[-1][1].visits

    # --- moving on

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        taken = tree.root.edges[edge]
        foreseen = taken.child
        known = next((node for node in taken.outcomes if not node.leaf and _matches(node, observed)), None)
        if known is None:
            taken.child, taken.others = None, ()
            tree.root = tree.add(tree.root, edge)
            fill(tree.root, observed)
            if foreseen is not None:
                _warm_start(tree.root, foreseen, observed)
        else:
            taken.others = tuple(node for node in taken.outcomes if node is not known)
            taken.child, known.parent, known.via = known, tree.root, edge  # a merged state may have been found by another way
            tree.root, known.closed = known, ""
        self.grant(tree)
        self._drop(tree)
        return known is not None

    def grant(self, tree: Tree) -> None:
        """Allow the iterations of the next commit; what was left over stays."""
        tree.search_began = tree.iterations
        tree.allowed += self.iterations

    def _drop(self, tree: Tree) -> None:
        """Release what is open outside the new root's subtree, and let what is open inside begin at the root."""
        for work in list(tree.open.values()):
            below = next((i for i, (node, _) in enumerate(work.path) if node is tree.root), None)
            if below is None and work.target is not tree.root:
                self._end(tree, work)
            else:
                cut = len(work.path) if below is None else below
                reserve(work.path[:cut], None, -1)
                work.path = work.path[cut:]

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """The real environment refused a committed action: the root stays, the action is not tried again."""
        refused = tree.root.edges[edge]
        refused.closed, refused.futile = f"action: {reason}", True
        tree.root.refused, tree.resting = True, None

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """States along the most visited path, the deepest first: where a step is likely next."""
        node, found = tree.root, list[Node]()
        while node.edges and not node.leaf:
            found.append(node)
            below = [edge.child for edge in node.edges if edge.child and not edge.closed]
            if not below:
                break
            node = max(below, key=lambda child: child.visits)
        return found[::-1][:k]

    def alternatives(self, node: Node) -> tuple[Alternative, ...]:
        """How a node's actions stand."""
        return tuple(
            Alternative(edge=i, action=edge.action.key, prior=edge.prior, visits=edge.visits, value=edge.value)
            for i, edge in enumerate(node.edges)
        )

    def commit(self, tree: Tree, order: Sequence[int], reason: str, *, plan: Sequence[int] = ()) -> Decision:
        """The decision for the first edge of an order, or for a whole plan. Raises SearchError if there is none."""
        edges = tuple(plan) or tuple(order[:1])
        if not edges:
            raise SearchError("no action is left to commit: every proposal was refused, led nowhere or failed")
        return Decision(edges=edges, reason=reason, value=tree.root.edges[edges[0]].value, alternatives=self.alternatives(tree.root))


def _reserved(tree: Tree, path: Path, target: Node | None, selection: Selection) -> Selection:
    """Open a selection: count it on its path, and as the tree's latest."""
    tree.selections += 1
    reserve(path, target, +1)
    tree.open[selection.id] = Open(selection, path, target, list(selection.needs))
    return selection


def fill(node: Node, result: Stepped) -> None:
    """Write what a step showed into the state it led to."""
    node.fingerprint, node.observation, node.screenshot = result.fingerprint, result.observation, result.screenshot
    node.terminated, node.blocked, node.beyond = result.terminated, result.blocked, result.beyond
    node.arrivals += 1


def normalise_priors(edges: Sequence[Edge]) -> None:
    """Scale the priors of a node's edges to sum to 1."""
    total = sum([edge.prior for edge in edges])
    if total != 1.0:
        for edge in edges:
            edge.prior /= total


def _matches(node: Node, result: Stepped) -> bool:
    """Whether a state is the one that a step showed."""
    return node.fingerprint == result.fingerprint and node.terminated == result.terminated and node.beyond == result.beyond


def _warm_start(child: Node, foreseen: Node, observed: Stepped) -> None:
    """Another state came than was foreseen: keep of the dropped one what still holds."""
    if foreseen.leaf and observed.terminated:
        child.evaluation, child.evaluations, child.value_sum = foreseen.evaluation, foreseen.evaluations, foreseen.value_sum
    if not child.leaf:
        child.edges = [Edge(edge.action, edge.prior, edge.rationale, edge.writes) for edge in foreseen.edges if not edge.futile]


def _not_open(selection: Selection) -> SearchError:
    return SearchError(f"node {selection.node}: selection {selection.id} is not open: it was told in full or released")


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
    """The open need that a result of a kind meets; None where it meets none, or comes before the step."""
    for need in left:
        if _ANSWER[need] is kind:
            return need
        if need == "step":
            break
    return None
