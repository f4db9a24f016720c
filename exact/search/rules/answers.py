"""Ends with the same answer: what is said of one is said of all."""

from __future__ import annotations

import msgspec

from exact.search.tree import Node, Tree


class AnswerVote(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that branches of a search stopped with."""

    key: str
    """Canonical text of the action: `stop "42"`."""
    nodes: tuple[int, ...]
    """Ids of the ends that gave it, in order of their first judgement."""
    value: float
    """Mean of all evaluations of them, in [0, 1]."""
    weight: float
    """Sum of their values: a vote, weighted by how good each looked (self-consistency, Wang et al. 2023)."""


def answer_text(node: Node) -> str:
    """What an end says: the text of its `stop`; empty for an end of another kind."""
    return node.edge.action.key if node.terminated and node.edge and node.edge.action.name == "stop" else ""


def record_end(tree: Tree, node: Node) -> None:
    """Take an end in that is judged for the first time."""
    tree.ends.append(node)
    if answer := answer_text(node):
        tree.answers.setdefault(answer, []).append(node)


def pooled_value(tree: Tree, node: Node) -> float:
    """Mean of all evaluations of the ends that give a judged end's answer, its own included."""
    same = [end for end in tree.answers.get(answer_text(node), ()) if end is not node]
    count = node.evaluations + sum(end.evaluations for end in same)
    return (node.value_sum + sum(end.value_sum for end in same)) / count


def answers(tree: Tree) -> list[AnswerVote]:
    """The answers given in a tree, the heaviest first, then in order of appearance."""
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
