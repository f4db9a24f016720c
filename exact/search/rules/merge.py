"""States that are one: a step that changes nothing, siblings that land together, and (by choice) any equal states.

A fingerprint is what can be seen, so two states are one only where `beyond` agrees too: writes made on the way, open tabs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from exact.search.rules.backup import Backup, back_up
from exact.search.tree import Edge, Node, Path, Tree

Merging = Literal["none", "noop", "siblings", "full"]
"""What counts as one state. Each includes those before it.

noop: a child that equals a state on its own path is closed, without a judge. siblings: edges of one state that land together are
one, their priors add. full: any two states of equal fingerprint, `beyond` and depth are one node with several ways to it.
"""


def merge(tree: Tree, path: Path, child: Node, edge: Edge, merging: Merging, *, rule: Backup, discount: float) -> bool:
    """Whether a new state is one that is known, and so needs no judgement. `path` leads to it, `edge` last."""
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
    return one.fingerprint == other.fingerprint and not one.leaf and one.beyond == other.beyond


def _noop(tree: Tree, path: Path, child: Node, passed: Node, rule: Backup, discount: float) -> None:
    """It looks like a state on the way here: not judged again, the value that one had counts once more; not searched either.

    But it may be committed: the step may have changed what cannot be seen, and going back may be the only way out.
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
    """Two actions of a state with one result: the first stands for both."""
    twin.prior += edge.prior
    edge.prior = 0.0
    child.closed = edge.closed = f"twin: lands where action {index} lands"
    edge.futile = True
    tree.iterations += 1


def _known(tree: Tree, path: Path, child: Node, edge: Edge, rule: Backup, discount: float) -> bool:
    """Full merging: the edge leads to the node that stands for the state; what is known of it counts here too."""
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
    """The states on the way to the end of a path, the nearest first, and those before the root."""
    for node, _ in reversed(path):
        yield node
    node = path[0][0]
    while node.parent is not None:
        node = node.parent
        yield node
