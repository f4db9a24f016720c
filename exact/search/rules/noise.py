"""Measurement of the evaluator's noise from repeated evaluations of one state."""

from __future__ import annotations

from exact.context import Evaluation
from exact.search.tree import Node, Tree


def record_noise(tree: Tree, node: Node, evaluation: Evaluation) -> None:
    """Add one more evaluation of `node` to the tree's noise estimate, before it is counted in the node.

    There are two sources. The samples of one evaluation: the variance of their mean is `within^2 / n`, or `disagreement^2 / (n - 1)` if the
    evaluation does not say where its samples differ. Repeated evaluations of one state: Welford's update. The order effect cancels in the
    mean, and a spread between judges is not noise. Noise that repeats each time a state is evaluated cannot be seen this way.
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
