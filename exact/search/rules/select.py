"""Selection rules: which edge a descent follows at a state.

A rule scores each open edge as `Q + exploration` and follows the highest, the first of equals. The default is PUCT,

    Q(s,a) + c P(s,a) sqrt(N(s)) / (1 + N(s,a))

(Rosin 2011, "Multi-armed bandits with episode context"; AlphaZero, Silver et al. 2018). It is computed in `rule`: once in the loop for
states without work in flight, and once in `_among_others` for all other cases. Selections in flight add to the counts, not to Q (WU-UCT,
Liu et al. 2020).

Scaling of Q before exploration is added, so that priors do not drown an evaluator that uses only part of [0, 1].

First-play urgency: the Q of an action that has not been tried.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from exact.search.tree import Edge, Edges, Node, Tree, touched

FirstPlay = Callable[[Node], float]
"""Function that returns the value, in [0, 1], of a state's unvisited edges."""


def parent_value(node: Node) -> float:
    """Return the state's own V, or 0.5 if unknown: an untried action is neither better nor worse than its state."""
    return node.value_sum / node.evaluations if node.evaluations else 0.5


def parent_mean(node: Node) -> float:
    """Return the mean of all values backed up at the state."""
    mean = node.mean
    return 0.5 if mean is None else mean


def zero(node: Node) -> float:
    """Return 0: only priors speak for an untried action, as in OpenSpiel's MCTS."""
    return 0.0


def lowest(node: Node) -> float:
    """Return the minimum of the state's mean and its visited edges' Q, as mctx does for MuZero."""
    return min([parent_mean(node), *(edge.q for edge in touched(node) if edge.visits)])


SelectionRule = Callable[[Tree, Node], int]
"""Function that returns the index of the edge to follow at a node; -1 if none is open."""

Ends = Literal["explore", "value"]
"""How a visited end is scored. explore: as any other state. value: by its Q alone, because another visit shows nothing new (OpenSpiel).
In a stochastic environment another visit may show another outcome, so that an end is scored as any other state."""


@dataclass(frozen=True)
class Exploration:
    """Exploration term, from N visits of the state and n of the edge; both include those in flight."""

    weight: Callable[[int], float]
    """Function of N."""
    by_prior: bool = True
    """Whether the term is `c weight(N) P / (1 + n)`; else it is `c weight(N) / sqrt(n)`, infinite for an unvisited edge."""


PUCT = Exploration(math.sqrt)
"""`c P(s,a) sqrt(N(s)) / (1 + N(s,a))`: PUCT as in AlphaZero (Silver et al. 2018)."""

UCT = Exploration(lambda visits: math.sqrt(math.log(max(visits, 1))), by_prior=False)
"""`c sqrt(ln N(s) / N(s,a))`, an unvisited edge first: UCB1 on trees (Kocsis and Szepesvari 2006). Priors are not used."""

MUZERO = Exploration(lambda visits: math.sqrt(visits) * (1.25 + math.log((visits + 19652 + 1) / 19652)))
"""PUCT with MuZero's slowly growing constant, `1.25 + ln((N + 19653) / 19652)` (Schrittwieser et al. 2020). c scales it; 1 is MuZero's."""


def rule(
    explore: Exploration = PUCT,
    *,
    c: float = 0.5,
    first_play: FirstPlay = parent_value,
    normalise: Normalise | None = None,
    ends: Ends = "explore",
    disagreement_bonus: float = 0.0,
) -> SelectionRule:
    """Return a selection rule: `argmax Q(s,a) + c P(s,a) sqrt(N(s)) / (1 + N(s,a))` with `explore=PUCT`.

        explore             exploration term
        c                   exploration constant, at least 0, on values in [0, 1]
        first_play          Q of an edge without visits
        normalise           span of Q; None: Q is not scaled
        ends                see Ends
        disagreement_bonus  factor b of `1 + b between`, which multiplies the exploration of an edge

    between: spread between the judges of the state that the edge leads to. Order effects and the spread within a judge do not count: more
    samples cure those, more search does not.
    """
    weight_of, by_prior = explore.weight, explore.by_prior
    explores = ends == "explore"
    among_others = _among_others(by_prior, disagreement_bonus)
    plain = by_prior and not disagreement_bonus

    def follow(tree: Tree, node: Node) -> int:
        weight = c * weight_of(node.visits + node.in_flight)
        if normalise:
            weight *= normalise(tree, node)  # the highest of (Q - low) / span + u is that of Q + span u
        unseen, free, edges = first_play(node), explores or tree.stochastic, node.edges
        slots: Sequence[Edge | None] = edges
        priors: Sequence[float] = ()
        if type(edges) is Edges:
            slots, priors = edges.slots, edges.priors
        if node.in_flight or not plain:
            return among_others(slots, priors, weight, unseen, free)
        top, found = -math.inf, -1
        for i, edge in enumerate(slots):  # the usual case, apart for speed
            if edge is None:
                score = unseen + weight * priors[i]
                if score > top:
                    top, found = score, i
                continue
            visits = edge.visits
            score = edge.q + weight * edge.prior / (1 + visits) if visits else unseen + weight * edge.prior
            if score <= top or edge.closed:
                continue
            if visits and not free and edge.child is not None and edge.child.terminated:
                score = edge.q  # at most the score above
                if score <= top:
                    continue
            top, found = score, i
        return found

    return follow


_Others = Callable[[Sequence[Edge | None], Sequence[float], float, float, bool], int]


def _among_others(by_prior: bool, disagreement_bonus: float) -> _Others:
    """Return the rule for states with selections in flight, with a disagreement bonus, or without priors.

    It takes the edges (None: not made yet), their priors, the weight `c sqrt(N(s))`, the value of untried actions, and whether ends are
    explored. An edge whose state is being worked on is passed over.
    """

    def follow(slots: Sequence[Edge | None], priors: Sequence[float], weight: float, unseen: float, free: bool) -> int:
        top, found = -math.inf, -1
        for i, edge in enumerate(slots):
            if edge is None:
                score = unseen + weight * priors[i] if by_prior else math.inf
                if score > top:
                    top, found = score, i
                continue
            if edge.closed:
                continue
            visits = edge.visits
            score = edge.q if visits else unseen
            if edge.in_flight:
                if busy(edge):
                    continue
                visits += edge.in_flight
            if free or not edge.visits or edge.child is None or not edge.child.terminated:
                bonus = weight * (1 + disagreement_bonus * _disagreement(edge)) if disagreement_bonus else weight
                if by_prior:
                    score += bonus * edge.prior / (1 + visits)
                else:
                    score += bonus / math.sqrt(visits) if visits else math.inf
            if score > top:
                top, found = score, i
        return found

    return follow


def _disagreement(edge: Edge) -> float:
    """Return the spread between the judges of the state that an edge leads to, in [0, 0.5]."""
    state = edge.child
    return state.evaluation.between if state is not None and state.evaluation is not None else 0.0


def puct(c: float = 0.5) -> SelectionRule:
    """Return the default rule: PUCT, `Q + c P sqrt(N(s)) / (1 + N(s,a))`, with the parent's own value as first play."""
    return rule(PUCT, c=c)


def busy(edge: Edge) -> bool:
    """Return whether the state that a descent would reach by an edge is being created, evaluated or expanded right now."""
    return bool(edge.in_flight) and (edge.child is None or follow(edge).pending)


def follow(edge: Edge) -> Node:
    """Return the outcome of a taken edge in which a descent continues: of several, the one most often seen relative to its visits."""
    assert edge.child is not None
    if not edge.others:
        return edge.child
    return max(edge.outcomes, key=lambda node: node.arrivals / (1 + node.visits + node.in_flight))


def is_due(tree: Tree, edge: Edge) -> bool:
    """Return whether a step that was taken before is to be taken once more: in a stochastic environment, once for each visit."""
    return tree.stochastic and sum(node.arrivals for node in edge.outcomes) <= edge.visits


Normalise = Callable[[Tree, Node], float]
"""Function that returns the span of Q at a node, above 0. Q counts as `(Q - low) / span` beside exploration; all edges share the same low
end."""


def siblings(floor: float) -> Normalise:
    """Return the span of the state's mean and its visited edges' Q, as mctx does for MuZero.

    The span is at least `floor` (above 0; mctx uses 1e-8) and the evaluator's measured noise, so that noise is not magnified.
    """

    def span(tree: Tree, node: Node) -> float:
        known = [edge.q for edge in touched(node) if edge.visits]
        mean = node.mean
        if mean is not None:
            known.append(mean)
        return max(max(known) - min(known), floor, tree.noise) if known else 1.0

    return span
