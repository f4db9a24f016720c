"""The root's candidates that lie within the noise of each other, judged again until the gap between them exceeds its error.

Q of a candidate rests on n evaluations, each off by about `noise`; so it is known to `noise / sqrt(n)`. Candidates whose Q lies less than
`z` such errors below the best one's are rivals: Q does not tell them apart. Their states are judged again, the least certain first, and
what those evaluations say decides among them. They end when the best rival leads the next by `z` errors of their own.

Each judgement is an iteration: they are paid for out of those granted, so searches with and without them cost the same.
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
    """Those of the root's edges, best first, whose Q lies within the error of the best one's; empty where none reevaluates it."""
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
    """The rival to judge again next; None where there are none, or their evaluations have told them apart.

    Wait while all that were judged again the least often are being worked on: what they are found worth may settle it.
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
    """Whether all rivals were judged again, and the best leads the next by `z` errors of the gap."""
    if not all(_scores(tree, i) for i in among):
        return False
    first, second = sorted(among, key=lambda i: -_mean(tree, i))[:2]
    return _mean(tree, first) - _mean(tree, second) > z * math.hypot(_error(tree, first), _error(tree, second))


def reranked(tree: Tree, order: Sequence[int], z: float, noise: float) -> list[int] | None:
    """The order with the rivals first, by what they were judged again; None where there are none, or not all of them were."""
    among = rivals(tree, order, z, noise)
    if not among or not all(_scores(tree, i) for i in among):
        return None
    ranked = sorted(among, key=lambda i: -_mean(tree, i))
    return [*ranked, *(i for i in order if i not in among)]


def reevaluation_count(tree: Tree) -> int:
    """How many evaluations the root's candidates have had to tell them apart, those under way included."""
    under_way = sum(work.selection.reevaluates for work in tree.open.values())
    return under_way + sum(len(tree.reevaluations.get(child.id, ())) for edge in tree.root.edges for child in edge.outcomes)


def record_score(tree: Tree, node: Node, evaluation: Evaluation, noise: float) -> None:
    """Keep a judgement of a rival's state, with the variance that its own opinions show; without any, that of the assumed noise."""
    opinions = len(evaluation.samples)
    variance = evaluation.within**2 / opinions if opinions > 1 else noise**2
    tree.reevaluations.setdefault(node.id, []).append((evaluation.value, variance))


def _scores(tree: Tree, index: int) -> list[tuple[float, float]]:
    return tree.reevaluations.get(follow(tree.root.edges[index]).id, [])


def _mean(tree: Tree, index: int) -> float:
    scores = _scores(tree, index)
    return sum(value for value, _ in scores) / len(scores)


def _error(tree: Tree, index: int) -> float:
    """Standard error of the mean: by what the opinions show and by how far the evaluations lie apart, the larger; infinite for none."""
    scores = _scores(tree, index)
    if not scores:
        return math.inf
    shown = sum(variance for _, variance in scores) / len(scores) ** 2
    if len(scores) < 2:
        return math.sqrt(shown)
    mean = _mean(tree, index)
    spread = sum((value - mean) ** 2 for value, _ in scores) / (len(scores) - 1) / len(scores)
    return math.sqrt(max(shown, spread))
