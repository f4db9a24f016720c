"""Backup of a value along a path, and reservations along it.

A backup counts one value into a state and into every edge and state above it. The strategy computes Q(s, a): it receives an edge whose
counts are up to date and returns its Q.

Keyed random draws: the same in whatever order results arrive, and after a resume.

Measurement of the evaluator's noise from repeated evaluations of one state.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

from exact.context import Evaluation
from exact.search.tree import Edge, Node, Path, Tree, touched

Backup = Callable[[Edge, Node], float]
"""Strategy that returns Q of an edge, given the edge, whose `visits` and `total` include the new value, and the state it led to. Q stays in
the range of the values backed up."""


def mean(edge: Edge, node: Node) -> float:
    """Return the mean of all values backed up through the edge, as in UCT (Kocsis and Szepesvari 2006) and AlphaZero."""
    return edge.total / edge.visits


def maximum(edge: Edge, node: Node) -> float:
    """Return the best known value below: the highest Q of the state's edges, or its own V while no edge was visited.

    An edge that leads back to a state on its own path does not count: a cycle gains nothing. Of an edge with several outcomes it is the
    mean over them, as often as they came.
    """
    if not edge.others:
        return _best_below(edge, node)
    seen = [child for child in edge.outcomes if child.arrivals and child.value is not None]
    return sum(child.arrivals * _best_below(edge, child) for child in seen) / sum(child.arrivals for child in seen)


def _best_below(edge: Edge, node: Node) -> float:
    known = (below.q for below in touched(node) if below.visits and not below.unsearched)
    return max(known, default=node.value if node.value is not None else mean(edge, node))


def discounted(by: float) -> Backup:
    """Return a strategy with `by` times the maximum: the best value below is one action away. by: in [0, 1]."""
    return maximum if by == 1.0 else lambda edge, node: by * maximum(edge, node)


def back_up(tree: Tree, path: Path, node: Node, value: float, *, rule: Backup = mean, discount: float = 1.0) -> None:
    """Count one value of `node` into the node and into everything on the path to it.

    With a discount below 1 each edge gets `discount` times the value below it, so that the shorter of two paths to the same end is worth
    more.
    """
    node.visits += 1
    node.backups += 1
    tree.iterations += 1
    if value < tree.low:
        tree.low = value
    if value > tree.high:
        tree.high = value
    below, averages = node, rule is mean
    for above, edge in reversed(path):
        if discount != 1.0:
            value *= discount
        above.visits += 1
        if visits := edge.visits:
            edge.visits = visits = visits + 1
            edge.total = total = edge.total + value
            if not edge.closed or not edge.settled:  # only closed edges are settled
                edge.q = total / visits if averages else rule(edge, below)
        else:
            edge.visits, edge.total = 1, value  # and Q is the same number object
            if not edge.closed or not edge.settled:
                edge.q = value if averages else rule(edge, below)
        below = above


def reserve(path: Path, node: Node | None, by: int) -> None:
    """Add `by` (+1 or -1) to the selections in flight on a path and at the node below it, if there is one."""
    if node is not None:
        node.in_flight += by
    for above, edge in path:
        above.in_flight += by
        edge.in_flight += by


def generator(*key: object) -> random.Random:
    """Return a random generator for a key: the tree's seed, the purpose, the node, the index of the draw."""
    text = "\x1f".join(map(str, key)).encode()
    return random.Random(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))


def uniform(*key: object) -> float:
    """Return a number in [0, 1) for a key."""
    text = "\x1f".join(map(str, key)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64


def record_noise(tree: Tree, node: Node, evaluation: Evaluation) -> None:
    """Add one more evaluation of `node` to the tree's noise estimate, before it is counted in the node.

    There are two sources. The samples of one evaluation: the variance of their mean is `within^2 / n`, or `disagreement^2 / (n - 1)` if the
    evaluation does not break down the spread of its samples. Repeated evaluations of one state: Welford's update. The order effect cancels
    in the mean, and a spread between judges is not noise. Noise that repeats each time a state is evaluated cannot be seen this way.
    """
    samples = len(evaluation.samples)
    if samples > 1 and (evaluation.within or evaluation.between or evaluation.order_effect):
        tree.squares += evaluation.within**2 / samples
        tree.repeats += 1
    elif samples > 1:
        tree.squares += evaluation.disagreement**2 / (samples - 1)
        tree.repeats += 1
    elif node.evaluations:
        before = node.value_sum / node.evaluations
        tree.squares += (evaluation.value - before) ** 2 * node.evaluations / (node.evaluations + 1)
        tree.repeats += 1
