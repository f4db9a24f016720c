"""Scaling of Q before exploration is added, so that priors do not drown an evaluator that uses only part of [0, 1]."""

from __future__ import annotations

from collections.abc import Callable

from exact.search.tree import Node, Tree

Normalise = Callable[[Tree, Node], float]
"""Function that returns the span of Q at a node, above 0. Q counts as `(Q - low) / span` beside exploration; all edges share the same low
end."""


def min_max(floor: float) -> Normalise:
    """Return the span of all values backed up in the tree (MuZero).

    The span is at least `floor` (above 0) and the evaluator's measured noise: differences that are noise are not magnified.
    """
    return lambda tree, node: max(tree.high - tree.low, floor, tree.noise) if tree.high >= tree.low else 1.0


def siblings(floor: float) -> Normalise:
    """Return the span of the state's mean and its visited edges' Q, as mctx does for MuZero. floor: as above; mctx uses 1e-8."""

    def span(tree: Tree, node: Node) -> float:
        known = [edge.q for edge in node.edges if edge.visits]
        mean = node.mean
        if mean is not None:
            known.append(mean)
        return max(max(known) - min(known), floor, tree.noise) if known else 1.0

    return span
