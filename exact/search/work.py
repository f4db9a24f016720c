"""What every algorithm does with the results it is told. The algorithms differ in what they ask."""

from __future__ import annotations

import math
from collections.abc import Iterator

from exact.search.backup import back_up, reserve
from exact.search.base import Alternative, Decision, Done, Failure, Need, Proposed, Result, Selection, Stepped, Valued, Wait
from exact.search.tree import Edge, Node, SearchError, Tree


class Work:
    """Base of the algorithms: reservations, results, failures, the move of the root. Holds no state: all of it is in the tree."""

    def __init__(self, *, k: int, retries: int = 2, iterations: int = 1) -> None:
        self.k, self.retries, self.iterations = k, retries, iterations

    def ask(self, tree: Tree) -> Selection | Wait | Done:
        raise NotImplementedError

    def decide(self, tree: Tree) -> Decision:
        raise NotImplementedError

    # --- making selections

    def select_step(self, tree: Tree, node: Node, index: int) -> Selection:
        """Reserve: act at `node`, then judge what comes."""
        node.edges[index].in_flight += 1
        return self._selection(tree, node, ("step", "value"), index)

    def select_state(self, tree: Tree, node: Node, need: Need) -> Selection:
        """Reserve: judge a state, or propose in it."""
        node.pending = True
        return self._selection(tree, node, (need,), None)

    def _selection(self, tree: Tree, node: Node, needs: tuple[Need, ...], edge: int | None) -> Selection:
        reserve(node, +1)
        tree.selections += 1
        return Selection(id=tree.selections - 1, node=node.id, edge=edge, needs=needs, k=self.k)

    # --- results

    def tell(self, tree: Tree, selection: Selection, result: Result) -> None:
        node, edge = self._place(tree, selection)
        state = node if edge is None else edge.child  # None: the step is still to come
        match result:
            case Stepped() if edge is not None and state is None:
                if self._stepped(tree, node, edge, selection, result):
                    return  # its value is still to come
            case Valued() if state is not None and "value" in selection.needs:
                self._valued(tree, state, result)
            case Proposed() if "proposals" in selection.needs:
                self._proposed(node, result)
            case Failure():
                self._failed(tree, state or edge, result)
            case _:
                raise SearchError(f"node {node.id}: a {type(result).__name__} result does not fit {selection}")
        _give_back(node, edge)

    def release(self, tree: Tree, selection: Selection) -> None:
        _give_back(*self._place(tree, selection))

    def _place(self, tree: Tree, selection: Selection) -> tuple[Node, Edge | None]:
        """Where an open selection works. Raises SearchError if it is not open."""
        node = tree.nodes[selection.node]
        edge = node.edges[selection.edge] if selection.edge is not None else None
        if not (node.pending if edge is None else _stepping(edge)):
            raise SearchError(f"node {node.id}: selection {selection.id} is not open: it was told in full or released")
        return node, edge

    def _stepped(self, tree: Tree, node: Node, edge: Edge, selection: Selection, result: Stepped) -> bool:
        """True if the new state wants its value; False if it is closed at once: it looks like one that was passed on the way here.

        Such a state is not judged again: the value it had counts once more. It is not searched either. But it may be committed: the
        step may have changed what cannot be seen, and going back may be the only way out.
        """
        assert selection.edge is not None
        child = tree.add(node, selection.edge)
        _place_result(child, result)
        passed = next((above for above in _above(child) if above.fingerprint == result.fingerprint), None)
        if child.leaf or passed is None:
            return True
        child.closed = edge.closed = "no-op: leads back to a state on its own path"
        edge.unsearched = True
        if passed.evaluation is None:
            tree.iterations += 1
        else:
            child.evaluation = passed.evaluation
            back_up(tree, child, passed.evaluation.value)
        return False

    def _valued(self, tree: Tree, node: Node, result: Valued) -> None:
        validate(node.id, result)
        value = result.evaluation.value
        node.evaluation = result.evaluation
        back_up(tree, node, value)

    def _proposed(self, node: Node, result: Proposed) -> None:
        validate(node.id, result)
        node.expansions += 1
        known = {edge.action.key: edge for edge in node.edges}
        for proposal in result.proposals:
            if proposal.action.key not in known:
                known[proposal.action.key] = Edge(proposal.action, 0.0, proposal.rationale)
                node.edges.append(known[proposal.action.key])
            known[proposal.action.key].prior += proposal.prior
        total = math.fsum(edge.prior for edge in node.edges)
        for edge in node.edges:
            edge.prior /= total

    def _failed(self, tree: Tree, target: Node | Edge | None, failure: Failure) -> None:
        """Close what is refused for good or has failed too often: an edge whose step failed, or a state and the edge to it."""
        assert target is not None
        if isinstance(target, Node) and failure.kind == "action" and target.edges:
            target.expansions += 1  # the policy has nothing to add: what it proposed before still stands
            return
        target.failures += 1
        if failure.kind not in ("action", "drifted") and target.failures <= self.retries:
            return
        target.closed = f"{failure.kind}: {failure.reason}"
        tree.iterations += 1
        if isinstance(target, Edge):
            target.futile, target.unsearched = failure.kind == "action", failure.kind != "action"
        elif target.edge is not None:
            target.edge.closed = target.closed

    # --- moving on

    def advance(self, tree: Tree, edge: int, observed: Stepped) -> bool:
        taken = tree.root.edges[edge]
        foreseen = taken.child
        kept = foreseen is not None and not foreseen.leaf and foreseen.fingerprint == observed.fingerprint != ""
        if kept and foreseen is not None:
            foreseen.closed = ""
        else:
            _place_result(tree.add(tree.root, edge), observed)
            if foreseen is not None and foreseen.leaf and observed.terminated and taken.child is not None:
                taken.child.evaluation = foreseen.evaluation  # judged from what lies before the step: still true
        assert taken.child is not None
        tree.root = taken.child
        tree.allowed += self.iterations
        return kept

    def refuse(self, tree: Tree, edge: int, reason: str) -> None:
        """The real world refused a committed action: the root stays, the action is not tried again."""
        refused = tree.root.edges[edge]
        refused.closed, refused.futile = f"action: {reason}", True

    def forecast(self, tree: Tree, k: int) -> list[Node]:
        """Open leaves by prior along the most visited path: where a step is likely next."""
        node, found = tree.root, list[Node]()
        while node.edges and len(found) < k:
            found.append(node)
            below = [edge.child for edge in node.edges if edge.child and not edge.closed]
            if not below:
                break
            node = max(below, key=lambda child: child.visits)
        return found[::-1]

    def alternatives(self, node: Node) -> tuple[Alternative, ...]:
        """How a node's actions stand."""
        return tuple(
            Alternative(edge=i, action=edge.action.key, prior=edge.prior, visits=edge.visits, value=edge.value)
            for i, edge in enumerate(node.edges)
        )

    def commit(self, tree: Tree, order: list[int], reason: str) -> Decision:
        """The decision for the first edge of an order. Raises SearchError if it is empty."""
        if not order:
            raise SearchError("no action is left to commit: every proposal was refused, led nowhere or failed")
        edge = tree.root.edges[order[0]]
        return Decision(edges=(order[0],), reason=reason, value=edge.value, alternatives=self.alternatives(tree.root))


def _stepping(edge: Edge) -> bool:
    """Whether a step and the judgement of what it leads to are under way."""
    child = edge.child
    return edge.in_flight > 0 and (child is None or (child.evaluation is None and not child.pending))


def _give_back(node: Node, edge: Edge | None) -> None:
    reserve(node, -1)
    if edge is not None:
        edge.in_flight -= 1
    else:
        node.pending = False


def _place_result(child: Node, result: Stepped) -> None:
    child.fingerprint, child.observation, child.screenshot = result.fingerprint, result.observation, result.screenshot
    child.terminated, child.held = result.terminated, result.held


def _above(node: Node) -> Iterator[Node]:
    """The states on the way to a node, the nearest first."""
    while node.parent is not None:
        node = node.parent
        yield node


def validate(node: int, result: Result) -> None:
    """Raise SearchError for a value outside [0, 1] or priors that are no distribution: before it gets into a journal or a tree."""
    if isinstance(result, Valued) and not 0.0 <= result.evaluation.value <= 1.0:  # NaN fails too
        raise SearchError(f"node {node}: value {result.evaluation.value} is outside [0, 1]: mend the value function")
    if isinstance(result, Proposed):
        priors = [proposal.prior for proposal in result.proposals]
        if not priors or not math.isclose(math.fsum(priors), 1.0, abs_tol=1e-6) or min(priors) < 0:
            raise SearchError(f"node {node}: priors {priors} are not a distribution: mend the policy")
