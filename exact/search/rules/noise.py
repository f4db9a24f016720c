"""How far evaluations of one state lie apart: what the search can know of its judge's noise."""

from __future__ import annotations

from exact.context import Evaluation
from exact.search.tree import Node, Tree


def record_noise(tree: Tree, node: Node, evaluation: Evaluation) -> None:
    """Take one more judgement of `node` into the tree's measured noise, before it is counted.

    Two sources: the opinions behind one evaluation (the variance of their mean is `within^2 / n`; where nothing says where they part,
    `disagreement^2 / (n - 1)`), and repeated evaluations of one state (Welford's update). What the order of reading does cancels in the
    mean, and a spread between judges is no noise. Noise that is the same each time a state is judged cannot be seen this way.
    """
    opinions = len(evaluation.samples)
    if opinions > 1 and (evaluation.within or evaluation.between or evaluation.order_effect):
        tree.squares += evaluation.within**2 / opinions
        tree.repeats += 1
    elif opinions > 1:
        tree.squares += evaluation.disagreement**2 / (opinions - 1)
        tree.repeats += 1
    elif node.evaluations:
        before = node.value_sum / node.evaluations
        tree.squares += (evaluation.value - before) ** 2 * node.evaluations / (node.evaluations + 1)
        tree.repeats += 1
