"""The final choice: the action to commit when a search has ended.

Decisions without a readable evaluation: the policy's first choice, as without a search.

Actions with an unseen effect, beside those that were searched.

A write is blocked while exploring, and some states cannot be reached again. The state that such an action leads to is judged by the state
before it and the action, and exploring never refutes that judgement. So it gets no visits beyond its evaluations, it never counts as the
end of a search, and it is committed only by these rules, the first that applies. An action that a failure closed before it was evaluated is
worth the state before it.

1. It promises more than the best searched action and than the state before it, by more than `CLEARLY`: it is committed.
2. The best searched action is worth more: that one is committed.
3. Otherwise the one with the higher `ln P + V / CLEARLY` is committed, as in an improved policy (Danihelka et al. 2022). V of the searched
   action is the better of its Q and of the value of the state it led to, since exploring lowers most means.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from exact.search.rules.select import parent_value
from exact.search.tree import Edge, Node, Tree, is_noop, written

NOISE = 0.3
"""Least standard deviation that is assumed of one evaluation. A larger measured one takes its place."""
CLEARLY = 0.1
"""Amount, on the scale of values, by which an unsearched action must promise more to be committed."""


@dataclass(frozen=True)
class FinalChoice:
    """An order of a root's edges, best first."""

    order: Callable[[Tree, Node], list[int]]
    reason: str


def first_value(node: Node, edge: Edge) -> float:
    """Return Q of an edge; for an unvisited edge the parent's own value (0.5 if unknown)."""
    return edge.q if edge.visits else parent_value(node)


def most_visited(node: Node) -> list[int]:
    """Return the indices of a node's visited edges, best first: by visits, then Q, then prior, then order (robust child).

    A settled edge gathers no more visits, so it comes first if its Q is above that of the most visited.
    """
    order = _ordered(node, lambda edge: (-edge.visits, -edge.q, -edge.prior))
    if not order or not any(node.edges[i].settled for i in order):
        return order
    lead = node.edges[order[0]].q
    ahead = [i for i in order if node.edges[i].settled and node.edges[i].q > lead]
    ahead.sort(key=lambda i: -node.edges[i].q)
    return ahead + [i for i in order if i not in ahead]


def most_valued(node: Node) -> list[int]:
    """Return the indices of a node's visited edges, best first: by Q, then prior, then order (max child)."""
    return _ordered(node, lambda edge: (-edge.q, -edge.prior))


def most_promising(node: Node) -> list[int]:
    """Return the indices of the unsearched edges that may be committed, best first: by Q or first-play value, then prior.

    An edge that changes nothing visible may still change the environment; one whose state replay could not reach may be good. A no-op that
    was committed in an equal state comes after those that were not, so that commits leave a dead end.
    """
    unsearched, repeats = [i for i, edge in enumerate(node.edges) if edge.unsearched and not edge.futile], _repeats(node)
    return sorted(unsearched, key=lambda i: (repeats(node.edges[i]), -first_value(node, node.edges[i]), -node.edges[i].prior, i))


def most_likely(node: Node) -> list[int]:
    """Return the indices of the edges that may be committed, by prior; those that change nothing come last.

    An edge that a failure closed keeps its rank: the failure says nothing about the action. No-ops that were committed in an equal state
    come after those that were not.
    """
    possible, repeats = [i for i, edge in enumerate(node.edges) if not edge.futile], _repeats(node)
    return sorted(possible, key=lambda i: (is_noop(node.edges[i]), repeats(node.edges[i]), -node.edges[i].prior, i))


def _repeats(node: Node) -> Callable[[Edge], int]:
    """Return a function that counts how often a no-op was taken in states equal to a node, on the path to it. 0 for other edges."""
    taken, at = Counter[str](), node
    while at.parent is not None:
        before, edge = at.parent, at.parent.edges[at.via]
        if (before.fingerprint, before.beyond) == (node.fingerprint, node.beyond):
            taken[edge.action.key] += 1
        at = before
    return lambda edge: taken[edge.action.key] if is_noop(edge) else 0


def _ordered(node: Node, key: Callable[[Edge], tuple[float, ...]]) -> list[int]:
    """Return the indices of the searched edges, sorted by a key."""
    visited = [i for i, edge in enumerate(node.edges) if edge.visits and not edge.futile and not edge.unsearched]
    return sorted(visited, key=lambda i: key(node.edges[i]))


def _max_robust(tree: Tree, node: Node) -> list[int]:
    """Return the edges by visits, led by the one that is first by both visits and Q, if there is one."""
    by_visits, by_value = most_visited(node), most_valued(node)
    both = [i for i in by_visits[:1] if i in by_value[:1]]
    return both + [i for i in by_visits if i not in both]


def _lower_bound(z: float, noise: float) -> Callable[[Tree, Node], list[int]]:
    """Return the order by the lower bound of Q."""

    def order(tree: Tree, node: Node) -> list[int]:
        error = z * max(tree.noise, noise)
        return _ordered(node, lambda edge: (-(edge.q - error / math.sqrt(backing(edge))), edge.distance, -edge.visits, -edge.prior))

    return order


def backing(edge: Edge) -> int:
    """Return the number of evaluations that support Q. For a settled edge, those of one end."""
    if not edge.settled:
        return edge.visits
    child = edge.child
    return max(1, child.evaluations) if child is not None and child.leaf else 1


VISITS = FinalChoice(lambda tree, node: most_visited(node), "most visits")
"""Robust child: most visits."""
VALUE = FinalChoice(lambda tree, node: most_valued(node), "the highest value")
"""Max child: highest Q."""
MAX_ROBUST = FinalChoice(_max_robust, "most visits and the highest value")
"""Max-robust child (Coulom 2007): first by both; otherwise most visits."""


def lower_bound(z: float = 1.0, noise: float = NOISE) -> FinalChoice:
    """Return the secure child: the highest `Q - z max(measured, noise) / sqrt(N)`.

    measured: standard deviation of one evaluation in this tree. noise: its assumed lower bound, since values below one action differ by
    more than the evaluator's error. With many workers visits are spread by work in flight as well as by Q, so this is the default: see
    bench/search_quality.py and bench/parallel_search.py.
    """
    return FinalChoice(_lower_bound(z, noise), "the highest lower bound")


LOWER_BOUND = lower_bound()
"""Secure child with default parameters."""


def principal(tree: Tree, final: FinalChoice, node: Node | None = None) -> list[int]:
    """Return the principal variation: the edge index of each state's final choice, down to the first state without visited edges.

    node: its start; by default the root.
    """
    node, edges = node or tree.root, list[int]()
    while not node.leaf:
        order = final.order(tree, node)
        if not order:
            break
        edges.append(order[0])
        child = node.edges[order[0]].child
        if child is None:
            break
        node = child
    return edges


HARMLESS = "as good as a write that is worth nothing, and writes nothing"
"""Reason of a decision that `harmless_first` changed."""


def is_write(node: Node, edge: Edge) -> bool:
    """Return whether an action of a state is known or presumed to change something outside."""
    return edge.writes or any(each.blocked or written(each.beyond) - written(node.beyond) for each in edge.outcomes)


def harmless_first(node: Node, order: Sequence[int], *, unjudged: bool = False) -> int | None:
    """Return the index of the edge to commit in place of the first of an order; None if that one is right.

    Of actions that are all worth nothing and equally likely, one that writes is not committed if there is one that does not. An action
    that is known to change nothing comes last among those. `unjudged`: no evaluation could be read, so that nothing is known of any worth.
    """
    if not order or not is_write(node, lead := node.edges[order[0]]):
        return None
    if not unjudged and first_value(node, lead) > 0:
        return None
    return next((i for i in most_likely(node) if node.edges[i].prior >= lead.prior - _SAME and not is_write(node, node.edges[i])), None)


UNJUDGED = "the highest prior: no evaluation below could be read"
"""Reason of a decision of this rule."""


def is_unjudged(node: Node) -> bool:
    """Return whether the evaluation of a state could not be read, so that its value is that of the state before."""
    return node.evaluation is not None and node.evaluation.unjudged


def knows_nothing(tree: Tree) -> bool:
    """Return whether states below the root were evaluated and none of the evaluations could be read."""
    evaluated = [node for node in tree.walk() if node is not tree.root and node.evaluation is not None]
    return bool(evaluated) and all(map(is_unjudged, evaluated))


UNSEEN = "the best beside actions whose effect was not seen"
"""Reason of a decision that these rules changed."""
_LEAST_PRIOR = 1e-6
_SAME = 1e-9
"""Difference below which two priors are equal."""


class Candidate(NamedTuple):
    """An action at the time of a decision."""

    value: float
    """What it is worth, in [0, 1]: Q or a score."""
    first: float
    """Value of the state it led to, by itself; in [0, 1]."""
    prior: float


def is_unseen(edge: Edge) -> bool:
    """Return whether no outcome of a tried action was seen."""
    return edge.child is not None and all(node.unseen for node in edge.outcomes)


def is_failed(edge: Edge) -> bool:
    """Return whether a failure closed an edge before it had a value. That says nothing about the action."""
    return edge.unsearched and not edge.visits and not edge.futile and not is_noop(edge)


def prefers_unseen(unseen: Candidate, searched: Candidate, *, before: float) -> bool:
    """Return whether an unseen action is committed rather than the best searched one.

    `before`: value, in [0, 1], of the state before the unseen one.
    """
    if unseen.value > max(searched.value, searched.first, before) + CLEARLY:
        return True
    if searched.value > unseen.value:
        return False
    return _improved(unseen.value, unseen.prior) > _improved(max(searched.value, searched.first), searched.prior)


def _improved(value: float, prior: float) -> float:
    return math.log(max(prior, _LEAST_PRIOR)) + value / CLEARLY


def rank_unseen(node: Node, order: list[int]) -> list[int]:
    """Return an order of a node's edges, best first, with the best unseen action moved to the place that the module's rules give it.

    Actions that failures closed are added to the order. An empty order stays empty.
    """
    edges, failed = node.edges, [i for i, edge in enumerate(node.edges) if is_failed(edge)]
    unseen, searched = [i for i in order if is_unseen(edges[i])], [i for i in order if not is_unseen(edges[i])]
    if not order or not (unseen or failed):
        return order
    worth = {i: _candidate(node, edges[i]) for i in (*unseen, *failed, *searched)}
    unseen = sorted((*unseen, *failed), key=lambda i: (-worth[i].value, -worth[i].prior, i))
    if not searched:
        return unseen
    wins = prefers_unseen(worth[unseen[0]], worth[searched[0]], before=parent_value(node))
    return [*unseen[:1], *searched, *unseen[1:]] if wins else [*searched, *unseen]


def likeliest_failed(node: Node) -> int | None:
    """Return the index of the likeliest action that a failure closed; None if there is none."""
    failed = [i for i, edge in enumerate(node.edges) if is_failed(edge)]
    return max(failed, key=lambda i: (node.edges[i].prior, -i), default=None)


def _candidate(node: Node, edge: Edge) -> Candidate:
    value = first_value(node, edge)
    child = edge.child.value if edge.child is not None else None
    return Candidate(value, value if child is None else child, edge.prior)
