"""Merging of equal states: a step that changes nothing, siblings with the same result, and by choice any equal states.

A fingerprint covers only what can be seen. So two states are equal only if `beyond` is equal too: writes made on the way, open tabs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from exact.search.rules.backup import Backup, back_up
from exact.search.tree import Edge, Node, Path, Tree

Merging = Literal["none", "noop", "siblings", "full"]
"""States that count as equal. Each mode includes those before it.

noop: a child equal to a state on its own path is closed without an evaluation. siblings: edges of one state with the same result become
one, and their priors add. full: any two states with equal fingerprint, `beyond` and depth are one node with several paths to it.
"""


def merge(tree: Tree, path: Path, child: Node, edge: Edge, merging: Merging, *, rule: Backup, discount: float) -> bool:
    """Merge a new state with a known equal one. Return whether there is one, so that the new state needs no evaluation.

    path: leads to the new state, with `edge` last. rule, discount: for the value that is backed up again.
    """
    if merging == "none":
        return False
    if passed := next((above for above in _above(path) if _same(above, child)), None):
        _noop(tree, path, child, passed, rule, discount)
        return True
    if merging == "noop":
        return False
    node = path[-1][0]
    others = (other for other in node.edges if other is not edge and other.child and (other.settled or not other.closed))
    twin = next((other for other in others if other.child and _same(other.child, child)), None)
    if twin is not None:
        _twin(tree, child, edge, twin, node.edges.index(twin))
        return True
    return merging == "full" and _known(tree, path, child, edge, rule, discount)


def _same(one: Node, other: Node) -> bool:
    """Return whether two states are equal and neither is a leaf."""
    return one.fingerprint == other.fingerprint and not one.leaf and one.beyond == other.beyond


def _noop(tree: Tree, path: Path, child: Node, passed: Node, rule: Backup, discount: float) -> None:
    """Close a child that equals a state on its path, and back up that state's value once more.

    It may still be committed: the step may have changed something invisible, and going back may be the only way out.
    """
    edge = path[-1][1]
    child.closed = edge.closed = "no-op: leads back to a state on its own path"
    edge.unsearched = True
    if passed.evaluation is None or passed.value is None:
        tree.iterations += 1
        return
    child.evaluation, child.evaluations, child.value_sum = passed.evaluation, 1, passed.value
    back_up(tree, path, child, passed.value, rule=rule, discount=discount)


def _twin(tree: Tree, child: Node, edge: Edge, twin: Edge, index: int) -> None:
    """Close the second of two sibling actions with the same result; the first stands for both."""
    twin.prior += edge.prior
    edge.prior = 0.0
    child.closed = edge.closed = f"twin: lands where action {index} lands"
    edge.futile = True
    tree.iterations += 1


def _known(tree: Tree, path: Path, child: Node, edge: Edge, rule: Backup, discount: float) -> bool:
    """Lead an edge to the node of an equal state, and back up that state's mean. Return whether there is such a node."""
    known = tree.states.setdefault((child.fingerprint, child.beyond, child.depth), child)
    if known is child or known.closed:
        return False
    child.closed = f"merged: the state of node {known.id}"
    edge.child, edge.others = known, ()
    if known.mean is None:
        tree.iterations += 1
    else:
        back_up(tree, path, known, known.mean, rule=rule, discount=discount)
    return True


def _above(path: Path) -> Iterator[Node]:
    """Yield the states above the end of a path, the nearest first, including those before the root."""
    for node, _ in reversed(path):
        yield node
    node = path[0][0]
    while node.parent is not None:
        node = node.parent
        yield node
