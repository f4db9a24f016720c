"""Re-evaluation of the root's close candidates until the gap between them exceeds its error.

Q of a candidate rests on n evaluations, each with a standard deviation of about `noise`, so its standard error is `noise / sqrt(n)`.
Candidates whose Q lies less than `z` such errors below the best one's are rivals: Q does not separate them. Their states are evaluated
again, the least certain first, and those evaluations decide among them. This ends when the best rival leads the next by `z` standard errors
of these evaluations.

Each re-evaluation is one of the granted iterations, so searches with and without them cost the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from exact.context import Evaluation
from exact.search.base import Wait
from exact.search.rules.final import backing
from exact.search.rules.select import follow
from exact.search.tree import Edge, Node, Tree


def rivals(tree: Tree, order: Sequence[int], z: float, noise: float) -> list[int]:
    """Return the root's edges whose Q lies within the error of the best one's, best first; empty if there is only one."""
    edges = tree.root.edges
    if len(order) < 2:
        return []
    least = max(tree.noise, noise)
    top = max((edges[i] for i in order), key=lambda edge: edge.q)

    def error(edge: Edge) -> float:
        return z * least * math.sqrt(1 / backing(edge) + 1 / backing(top))

    found = [i for i in order if edges[i] is top or top.q - edges[i].q <= error(edges[i])]
    return found if len(found) > 1 else []


def next_rival(tree: Tree, order: Sequence[int], z: float, noise: float) -> int | Wait | None:
    """Return the rival to evaluate next; None if there is none, or their evaluations have separated them.

    Wait while all rivals with the fewest re-evaluations are being evaluated: their results may settle it.
    """
    among = rivals(tree, order, z, noise)
    if not among or are_separated(tree, among, z):
        return None
    states = {i: follow(tree.root.edges[i]) for i in among}
    if any(state.closed and not state.closed.startswith("exhausted") for state in states.values()):
        return None
    least = min(len(_scores(tree, i)) for i in among)
    free = [i for i in among if len(_scores(tree, i)) == least and not states[i].pending]
    return max(free, key=lambda i: _error(tree, i)) if free else Wait()


def are_separated(tree: Tree, among: Sequence[int], z: float) -> bool:
    """Return whether all rivals were evaluated again, and the best leads the next by `z` errors of the gap."""
    if not all(_scores(tree, i) for i in among):
        return False
    first, second = sorted(among, key=lambda i: -_mean(tree, i))[:2]
    return _mean(tree, first) - _mean(tree, second) > z * math.hypot(_error(tree, first), _error(tree, second))


def reranked(tree: Tree, order: Sequence[int], z: float, noise: float) -> list[int] | None:
    """Return the order with the rivals first, by their re-evaluations; None without rivals, or if some were not evaluated again."""
    among = rivals(tree, order, z, noise)
    if not among or not all(_scores(tree, i) for i in among):
        return None
    ranked = sorted(among, key=lambda i: -_mean(tree, i))
    return [*ranked, *(i for i in order if i not in among)]


def reevaluation_count(tree: Tree) -> int:
    """Return the number of re-evaluations of the root's candidates, those in flight included."""
    under_way = sum(work.selection.reevaluates for work in tree.open.values())
    return under_way + sum(len(tree.reevaluations.get(child.id, ())) for edge in tree.root.edges for child in edge.outcomes)


def record_score(tree: Tree, node: Node, evaluation: Evaluation, noise: float) -> None:
    """Record a re-evaluation with its variance: that of its samples, else that of the assumed noise."""
    samples = len(evaluation.samples)
    variance = evaluation.within**2 / samples if samples > 1 else noise**2
    tree.reevaluations.setdefault(node.id, []).append((evaluation.value, variance))


def _scores(tree: Tree, index: int) -> list[tuple[float, float]]:
    """Return the re-evaluations of the state that an edge leads to: each value with its variance."""
    return tree.reevaluations.get(follow(tree.root.edges[index]).id, [])


def _mean(tree: Tree, index: int) -> float:
    """Return the mean of a rival's re-evaluations."""
    scores = _scores(tree, index)
    return sum(value for value, _ in scores) / len(scores)


def _error(tree: Tree, index: int) -> float:
    """Return the standard error of a rival's mean: from its samples or from its spread, whichever is larger; infinite without any."""
    scores = _scores(tree, index)
    if not scores:
        return math.inf
    shown = sum(variance for _, variance in scores) / len(scores) ** 2
    if len(scores) < 2:
        return math.sqrt(shown)
    mean = _mean(tree, index)
    spread = sum((value - mean) ** 2 for value, _ in scores) / (len(scores) - 1) / len(scores)
    return math.sqrt(max(shown, spread))
