"""Ends with the same answer: what is said of one is said of all."""

from __future__ import annotations

import msgspec

from exact.search.tree import Node, Tree


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """One answer that branches of a search stopped with."""

    key: str
    """Canonical text of the action: `stop "42"`."""
    nodes: tuple[int, ...]
    """Ids of the ends that gave it, in order of their first judgement."""
    value: float
    """Mean of all judgements of them, in [0, 1]."""
    weight: float
    """Sum of their values: a vote, weighted by how good each looked (self-consistency, Wang et al. 2023)."""


def key(node: Node) -> str:
    """What an end says: the text of its `stop`; empty for an end of another kind."""
    return node.edge.action.key if node.terminated and node.edge and node.edge.action.name == "stop" else ""


def keep(tree: Tree, node: Node) -> None:
    """Take an end in that is judged for the first time."""
    tree.ends.append(node)
    if answer := key(node):
        tree.said.setdefault(answer, []).append(node)


def pooled(tree: Tree, node: Node) -> float:
    """Mean of all judgements of the ends that give a judged end's answer, its own included."""
    same = [end for end in tree.said.get(key(node), ()) if end is not node]
    count = node.judgements + sum(end.judgements for end in same)
    return (node.judged + sum(end.judged for end in same)) / count


def answers(tree: Tree) -> list[Answer]:
    """The answers given in a tree, the heaviest first, then in order of appearance."""
    pooled_ = [
        Answer(
            key=answer,
            nodes=tuple(end.id for end in ends),
            value=sum(end.judged for end in ends) / sum(end.judgements for end in ends),
            weight=sum(end.judged / end.judgements for end in ends),
        )
        for answer, ends in tree.said.items()
    ]
    return sorted(pooled_, key=lambda answer: -answer.weight)
