"""The improved policy: a policy updated by the values of its actions, with estimates for untried ones.

`pi'(a) = softmax(logits(a) + sigma(q(a)))` with `logits = ln P` (Danihelka et al. 2022, "Policy improvement by planning with Gumbel",
equation 11). q is completed: Q if the action was visited, else the mixed value of the state (their appendix D, mctx's formula)

    v = (V + sum N * weighted) / (1 + sum N)
    weighted = sum over visited a of P(a) Q(a) / sum over visited a of P(a)

Visits in flight count when visits are spread, never in Q or sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from exact.search.rules.select import SelectionRule, busy, parent_value
from exact.search.tree import Node, Tree

Sigma = Callable[[Tree, Node, Sequence[float]], list[float]]
"""Function that returns the weight of each completed Q beside the logits, in nats. It increases with Q."""

LEAST = 1e-30
"""Lower bound on priors, so that their logarithm is finite."""


def by_noise(assumed: float = 0.1, floor: float = 0.05) -> Sigma:
    """Return `sigma(q) = q sqrt(max(1, max N)) / noise`: one standard error of the most visited Q weighs as much as one nat of prior.

    noise: standard deviation of one evaluation as measured in the tree, at least `floor`; `assumed` until it is measured. So a difference
    that noise explains does not overturn a clear prior, and repeated evaluations count for more. Both parameters are above 0.
    """

    def sigma(tree: Tree, node: Node, q: Sequence[float]) -> list[float]:
        noise = max(tree.noise, floor) if tree.repeats else assumed
        weight = math.sqrt(max(1, _most(node))) / noise
        return [weight * value for value in q]

    return sigma


def by_visits(c_visit: float = 50.0, c_scale: float = 0.1, epsilon: float = 1e-8) -> Sigma:
    """Return `sigma(q) = (c_visit + max N) c_scale (q - min q) / max(max q - min q, epsilon)`: mctx's, with its defaults."""

    def sigma(tree: Tree, node: Node, q: Sequence[float]) -> list[float]:
        low = min(q)
        weight = (c_visit + _most(node)) * c_scale / max(max(q) - low, epsilon)
        return [weight * (value - low) for value in q]

    return sigma


def mixed_value(node: Node) -> float:
    """Return the mixed value of a state, which stands for its untried actions; see the module. V is 0.5 if unknown."""
    tried = [edge for edge in node.edges if edge.visits]
    if not tried:
        return parent_value(node)
    priors = [max(edge.prior, LEAST) for edge in tried]
    weighted = sum(prior * edge.q for prior, edge in zip(priors, tried, strict=True)) / sum(priors)
    visits = sum(edge.visits for edge in tried)
    return (parent_value(node) + visits * weighted) / (1 + visits)


def scores(tree: Tree, node: Node, sigma: Sigma) -> list[float]:
    """Return `logits + sigma(completed q)` of each edge of a node."""
    unseen = mixed_value(node)
    weighed = sigma(tree, node, [edge.q if edge.visits else unseen for edge in node.edges])
    return [math.log(max(edge.prior, LEAST)) + weight for edge, weight in zip(node.edges, weighed, strict=True)]


def improved(sigma: Sigma) -> SelectionRule:
    """Return the rule below the root: `argmax pi'(a) - N(a) / (1 + sum N)` over the open edges, the first of equals (their section 5).

    Visits are spread in the long run as pi' is. Edges whose state is being worked on are passed over.
    """

    def follow(tree: Tree, node: Node) -> int:
        open_ = [i for i, edge in enumerate(node.edges) if not edge.closed]
        if not open_:
            return -1
        all_ = scores(tree, node, sigma)
        top = max(all_[i] for i in open_)
        weights = {i: math.exp(all_[i] - top) for i in open_}
        visits = {i: node.edges[i].visits + node.edges[i].in_flight for i in open_}
        total, spread = sum(weights.values()), 1 + sum(visits.values())
        free = [i for i in open_ if not busy(node.edges[i])]
        return max(free, key=lambda i: weights[i] / total - visits[i] / spread, default=-1)

    return follow


def _most(node: Node) -> int:
    """Return the visits of the most visited edge."""
    return max((edge.visits for edge in node.edges), default=0)
