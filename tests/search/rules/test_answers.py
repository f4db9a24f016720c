"""Ends with the same answer."""

from __future__ import annotations

import pytest

from exact.action import Action
from exact.search.algorithms.greedy import Greedy
from exact.search.rules import merge
from exact.search.tree import Edge, Node, Tree
from tests.search.harness import valued


def stopped(tree: Tree, answer: str, value: float) -> Node:
    """Return an evaluated end that gives an answer."""
    tree.root.edges = [*tree.root.edges, Edge(Action(name="stop", args=(answer,), key=f'stop "{answer}"'), 0.1)]
    end = tree.add(tree.root, len(tree.root.edges) - 1)
    end.terminated = True
    Greedy(k=1).record_evaluation(tree, [(tree.root, tree.root.edges[-1])], end, valued(value).evaluation)
    return end


def test_ends_are_worth_what_all_with_their_answer_are() -> None:
    tree = Tree()
    ends = [stopped(tree, answer, value) for answer, value in (("1", 0.9), ("2", 0.6), ("1", 0.1))]
    assert [merge.pooled_value(tree, end) for end in ends] == pytest.approx([0.5, 0.6, 0.5])
    assert [(each.key, each.nodes) for each in merge.answers(tree)] == [('stop "1"', (1, 3)), ('stop "2"', (2,))]


def test_the_evaluation_of_an_end_ignores_ends_with_other_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, looked, key = Tree(), list[Node](), merge.answer_text
    monkeypatch.setattr(merge, "answer_text", lambda node: looked.append(node) or key(node))
    ends = [stopped(tree, str(i), 0.5) for i in range(50)]
    assert len(looked) <= 2 * len(ends)
