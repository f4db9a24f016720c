"""Merging of equal states: a step that changes nothing, siblings with the same result, and by choice any equal states.

A fingerprint covers only visible state. So two states are equal only if `beyond` is equal too: writes made on the way, open tabs.

Pooling of ends that give the same answer: an evaluation of one counts for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import msgspec

from exact.search.rules.backup import Backup, back_up
from exact.search.tree import Edge, Node, Path, Tree, touched

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
    others = (other for other in touched(node) if other is not edge and other.child and (other.settled or not other.closed))
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


class AnswerVote(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that ended one or more paths of a search."""

    key: str
    """Canonical text of the action: `stop "42"`."""
    nodes: tuple[int, ...]
    """Ids of the ends that gave the answer, in the order of their first evaluation."""
    value: float
    """Mean of all their evaluations, in [0, 1]."""
    weight: float
    """Sum of their values: a vote weighted by value (self-consistency, Wang et al. 2023)."""


def answer_text(node: Node) -> str:
    """Return the canonical text of an end's `stop`. Empty for another kind of end."""
    return node.edge.action.key if node.terminated and node.edge and node.edge.action.name == "stop" else ""


def record_end(tree: Tree, node: Node) -> None:
    """Record an end on its first evaluation."""
    tree.ends.append(node)
    if answer := answer_text(node):
        tree.answers.setdefault(answer, []).append(node)


def shared_value(tree: Tree, node: Node, value: float) -> float:
    """Return what an evaluation of an end backs up: its own value; if several ends have its answer, the mean of all their evaluations."""
    return pooled_value(tree, node) if len(tree.answers.get(answer_text(node), ())) > 1 else value


def pooled_value(tree: Tree, node: Node) -> float:
    """Return the mean of all evaluations of the ends that give the same answer as this evaluated end."""
    same = [end for end in tree.answers.get(answer_text(node), ()) if end is not node]
    count = node.evaluations + sum(end.evaluations for end in same)
    return (node.value_sum + sum(end.value_sum for end in same)) / count


def answers(tree: Tree) -> list[AnswerVote]:
    """Return the answers given in a tree, by weight, then in order of appearance."""
    pooled_ = [
        AnswerVote(
            key=answer,
            nodes=tuple(end.id for end in ends),
            value=sum(end.value_sum for end in ends) / sum(end.evaluations for end in ends),
            weight=sum(end.value_sum / end.evaluations for end in ends),
        )
        for answer, ends in tree.answers.items()
    ]
    return sorted(pooled_, key=lambda answer: -answer.weight)
