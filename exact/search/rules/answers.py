"""Pooling of ends that give the same answer: an evaluation of one counts for all of them."""

from __future__ import annotations

import msgspec

from exact.search.tree import Node, Tree


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
