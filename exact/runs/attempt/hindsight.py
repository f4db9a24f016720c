"""Expected against observed: for each committed step a record from which reflections are made."""

from __future__ import annotations

import math
from collections.abc import Iterator

from exact.context import Taken
from exact.reflection.contrast import FailedPath, Option, Record
from exact.runs.journal import events as ev
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import Blobs
from exact.search.base import Alternative, Decision
from exact.search.rules.backup import mean
from exact.search.rules.exhaust import settled_value
from exact.search.tree import Edge, Node
from exact.search.work import Work

FAILED = 0.3
"""Greatest value of an end that counts as failed."""
SOLVED = 0.5
"""Least value of an attempt that counts as one that went well."""


def hindsight(state: AttemptState, blobs: Blobs, outcome: float | None, noise: float = 0.3) -> list[Record]:
    """Return a record of each committed step that was carried out, in order.

    outcome: how the attempt ended, in [0, 1], in place of the last state's value; None where that is not known. noise: standard deviation
    of one evaluation, where the search measured none.
    """
    decided = [each for each, step in zip(state.decisions, state.committed, strict=False) if not step.refused]
    measured = math.sqrt(state.tree.squares / state.tree.repeats) if state.tree.repeats else 0.0
    found = list[Record]()
    for i, (decision, before, after) in enumerate(zip(decided, state.path, state.path[1:], strict=False)):
        following = decided[i + 1].decision.value if i + 1 < len(decided) else outcome
        found.append(_record(state, blobs, decision, before, after, following, outcome, max(noise, measured)))
    return found


def _record(
    state: AttemptState,
    blobs: Blobs,
    decided: ev.Decided,
    before: int,
    after: int,
    following: float | None,
    outcome: float | None,
    noise: float,
) -> Record:
    node, came, decision = state.tree.nodes[before], state.tree.nodes[after], decided.decision
    edge = node.edges[decision.edges[0]]
    options = {each.edge: each for each in decision.alternatives}
    chosen = options.get(decision.edges[0])
    visits = chosen.visits if chosen else 1
    evaluation = came.evaluation if came.evaluation is not None and not came.evaluation.unjudged else None
    first = evaluation.value if evaluation is not None else None
    ended = outcome if after == state.path[-1] else None
    return Record(
        step=_taken(blobs, node, edge),
        after=blobs.get_observation(came.observation) if came.observation else None,
        node=before,
        before=node.value,
        chosen=decision.value,
        chosen_visits=visits,
        expected=_expected(state.algorithm, node, edge, came, decision.value, visits),
        came=first if ended is None else ended,
        first=first,
        judgement=evaluation,
        final=_worth(state, edge, came, outcome) if ended is None else ended,
        following=following,
        favourite=_favourite(decision),
        best_other=max((option for option in _options(decision)), key=lambda option: option.value, default=None),
        failed=_deepest_failure(blobs, node, edge),
        noise=noise,
    )


def _expected(algorithm: object, node: Node, edge: Edge, came: Node, q: float | None, visits: int) -> float | None:
    """Return Q at the decision without the evaluations of the state that followed: what was expected before it was visited.

    Where Q holds nothing else it is V of the state before. A maximum, and a value that is settled, holds those evaluations only while
    nothing below is known. A mixture of mean and maximum is left as it is.
    """
    own = came.value
    if q is None or own is None or not visits:
        return q
    below = visits - came.backups
    if came.leaf or below <= 0:
        return node.value
    if edge.settled or not isinstance(algorithm, Work) or algorithm.backup is not mean:
        return q
    return min(1.0, max(0.0, (visits * q - algorithm.discount * came.backups * own) / below))


def _worth(state: AttemptState, edge: Edge, came: Node, outcome: float | None) -> float | None:
    """Return the value of a state on the path in hindsight: the search's backup of all that was found below it until the end.

    No less than a good outcome, to which the state led.
    """
    if came.mean is None:
        return None
    found = settled_value(came)
    if found is None:
        rule = state.algorithm.backup if isinstance(state.algorithm, Work) else mean
        found = rule(Edge(action=edge.action, prior=edge.prior, visits=1, total=came.mean), came)
    return max(found, outcome) if outcome is not None and outcome >= SOLVED else found


def _options(decision: Decision) -> Iterator[Option]:
    """Yield the actions that were not chosen and had a value."""
    for other in decision.alternatives:
        if other.edge != decision.edges[0] and other.value is not None:
            yield _option(other, other.value)


def _favourite(decision: Decision) -> Option | None:
    """Return the policy's first choice, where it was another action and was searched."""
    first = max(decision.alternatives, key=lambda each: each.prior, default=None)
    if first is None or first.edge == decision.edges[0] or first.value is None:
        return None
    return _option(first, first.value)


def _option(alternative: Alternative, value: float) -> Option:
    return Option(action=alternative.action, value=value, visits=alternative.visits)


def _taken(blobs: Blobs, node: Node, edge: Edge) -> Taken:
    return Taken(observation=blobs.get_observation(node.observation), action=edge.action, rationale=edge.rationale)


def _deepest_failure(blobs: Blobs, node: Node, committed: Edge) -> FailedPath | None:
    """Return the deepest end below the other actions of a state whose value counts as failed."""
    found: tuple[Node, Edge] | None = None
    for edge in node.edges:
        if edge is committed or edge.child is None or edge.child.parent is not node:
            continue
        for end in _ends(edge.child):
            if end.value is not None and end.value <= FAILED and (found is None or end.depth > found[0].depth):
                found = end, edge
    if found is None:
        return None
    end, edge = found
    after = edge.child.observation if edge.child is not None and not edge.child.leaf else ""
    return FailedPath(
        step=_taken(blobs, node, edge), after=blobs.get_observation(after) if after else None, depth=end.depth, value=end.value or 0.0
    )


def _ends(node: Node) -> Iterator[Node]:
    """Yield the terminated states at and below a node."""
    below = [node]
    while below:
        here = below.pop()
        if here.terminated:
            yield here
        below += [edge.child for edge in here.edges if edge.child is not None and edge.child.parent is here]
