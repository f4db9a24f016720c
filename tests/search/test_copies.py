"""Trees are values: a copy is equal, goes on alike, and neither changes the other."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.environments.toy.known import ToyEdge, ToyState
from exact.search.mcts import MCTS
from exact.search.tree import Edge, Node, Tree
from tests.search.harness import Harness, check_idle, go, graph, two_arms
from tests.search.test_any_order import NAMES, Crowd, any_environment, any_of, numbers

COPIES: list[Callable[[Any], Any]] = [copy.deepcopy, copy.copy, lambda part: pickle.loads(pickle.dumps(part))]  # noqa: S301 - its own bytes
NAMED = ["deepcopy", "copy", "pickle"]


def shape(tree: Tree) -> list[object]:
    """Return all that is known of each node and edge."""
    nodes = [(node.id, node.parent and node.parent.id, node.via, node.depth, node.closed, node.evaluation) for node in tree.nodes]
    edges = [
        (edge.action, edge.prior, edge.closed, [each.id for each in edge.outcomes], edge.futile, edge.settled, edge.distance, edge.failures)
        for node in tree.nodes
        for edge in node.edges
    ]
    return [*nodes, *edges, *numbers(tree), tree.root.id, [node.id for node in tree.ends]]


def searched(name: str, seed: int, workers: int, trouble: float, change: Callable[[Tree], Tree]) -> tuple[list[Any], list[object]]:
    """Search and commit as in `test_any_order`, in a tree that is changed before each search; what was asked, and the last tree."""
    dice = random.Random(seed)
    run = Harness(any_environment(dice), any_of(name, dice, 0.5))
    crowd = Crowd(run, dice, workers=workers, trouble=trouble)
    for _ in range(4):
        run.tree = change(run.tree)
        crowd.search()
        check_idle(run.tree)
        run.tree = change(run.tree)
        if not crowd.commit() or run.tree.root.terminated:
            break
    return run.asked, shape(run.tree)


@pytest.mark.parametrize("name", NAMES)
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 4), trouble=st.sampled_from((0.0, 0.3)), how=st.sampled_from(COPIES))
@settings(max_examples=25, deadline=None)
def test_a_copy_goes_on_as_the_original_does(name: str, seed: int, workers: int, trouble: float, how: Callable[[Tree], Tree]) -> None:
    assert searched(name, seed, workers, trouble, how) == searched(name, seed, workers, trouble, lambda tree: tree)


@pytest.mark.parametrize("how", COPIES, ids=NAMED)
@pytest.mark.parametrize("moves", [1, 2, 5])
def test_a_copy_in_the_middle_of_work_goes_on_and_leaves_the_original_alone(moves: int, how: Callable[[Tree], Tree]) -> None:
    run = Harness(any_environment(random.Random(4)), MCTS(iterations=25, k=3, widening=1.0))
    for _ in range(moves):
        run.meet(run.select())
    pending = run.select()
    other = Harness(run.graph, run.algorithm)
    before, other.tree = numbers(run.tree), how(run.tree)
    assert numbers(other.tree) == before and list(other.tree.open) == [pending.id]
    other.meet(pending)
    other.search()
    assert numbers(run.tree) == before
    run.meet(pending)
    run.search()
    assert numbers(run.tree) == numbers(other.tree)


@pytest.mark.parametrize("how", [*COPIES, dataclasses.replace], ids=[*NAMED, "replace"])
def test_a_rare_field_of_a_copied_edge_is_its_own(how: Callable[[Any], Any]) -> None:
    run = Harness(two_arms(), MCTS(iterations=6, k=2))
    run.meet(run.select())
    run.meet(run.select())
    edges = [how(edge) for edge in run.tree.root.edges]
    edges[0].futile = True
    assert [edge.futile for edge in (*edges, *run.tree.root.edges)] == [True, False, False, False]
    edges[0].distance = 3
    twin = how(edges[0])
    twin.distance = 4
    assert (edges[0].distance, twin.distance, twin.futile) == (3, 4, True)


@pytest.mark.parametrize("how", COPIES, ids=NAMED)
def test_a_copied_node_or_edge_has_the_tree_around_it(how: Callable[[Any], Any]) -> None:
    run = Harness(two_arms(), MCTS(iterations=6, k=2))
    run.search()
    child = run.tree.root.edges[0].child
    assert child is not None
    node: Node = how(child)
    assert node is not child and node.parent is not None and node.parent.edges[0].child is node and node.id == child.id
    edge: Edge = how(run.tree.root.edges[0])
    assert edge.child is not None and edge.child.parent is not None and edge.child.parent.edges[0] is edge
    assert (edge.visits, edge.q) == (run.tree.root.edges[0].visits, run.tree.root.edges[0].q)


@pytest.mark.parametrize("how", COPIES, ids=NAMED)
def test_a_deep_tree_is_copied(how: Callable[[Any], Any]) -> None:
    deep = 3000
    states = {f"s{i}": ToyState(edges={"on": ToyEdge(to=f"s{i + 1}", prior=1.0)}, looks=0.5) for i in range(deep)}
    run = Harness(graph({**states, f"s{deep}": ToyState(reward=1.0)}, start="s0"), MCTS(iterations=1, k=1))
    for node in range(deep):
        run.tree.nodes[node].edges = [Edge(action=go("on"), prior=1.0)]
        run.tree.add(run.tree.nodes[node], 0)
    copied = how(run.tree)
    assert len(copied.nodes) == deep + 1 and copied.nodes[-1].depth == deep and shape(copied) == shape(run.tree)
    assert how(run.tree.nodes[7]).id == 7
