"""How Q is scaled before exploration is added: a judge that uses only part of [0, 1] should not be drowned by the priors."""

from __future__ import annotations

from collections.abc import Callable

from exact.search.tree import Node, Tree

Normalise = Callable[[Tree, Node], float]
"""The span of Q at a node, above 0: Q counts as `(Q - low) / span` beside exploration; the low end is the same for all its edges."""


def min_max(floor: float) -> Normalise:
    """By the range of all values backed up in the tree (MuZero).

    The span is never below `floor` (> 0) or the judge's measured noise: differences that are noise are not blown up.
    """
    return lambda tree, node: max(tree.high - tree.low, floor, tree.noise) if tree.high >= tree.low else 1.0


def siblings(floor: float) -> Normalise:
    """By the range of the state's mean and its visited edges' Q, as mctx does for MuZero. `floor` as above; mctx: 1e-8."""

    def span(tree: Tree, node: Node) -> float:
        known = [edge.q for edge in node.edges if edge.visits]
        mean = node.mean
        if mean is not None:
            known.append(mean)
        return max(max(known) - min(known), floor, tree.noise) if known else 1.0

    return span
