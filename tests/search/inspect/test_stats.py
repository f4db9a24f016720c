"""Figures of a tree, worked out by hand."""

from __future__ import annotations

import pytest

from exact.environments.toy.known import ToyEdge, ToyState, bandit, chain, deceptive_chain
from exact.search.algorithms.best_first import BestFirst
from exact.search.inspect.stats import entropy, stats
from exact.search.mcts import MCTS
from tests.search.harness import Harness, graph


def test_a_tree_of_one_state_has_nothing_to_measure() -> None:
    found = stats(Harness(chain(2), MCTS(iterations=4, k=2)).tree)
    assert (found.states, found.proposals, found.depth, found.evaluations) == (1, 0, 0, 0)
    assert found.unused is found.branching is found.entropy is found.agreement is None


def test_depth_branching_and_unused_are_counted() -> None:
    run = Harness(bandit(4), BestFirst(iterations=3, k=4))
    run.search()
    found = stats(run.tree)
    assert (found.states, found.proposals, found.evaluations, found.depth, found.branching) == (3, 4, 3, 1, 4.0)
    assert found.unused == 0.5 and found.mean_depth == pytest.approx(2 / 3)


def test_entropy_is_0_on_one_action_and_1_evenly_spread() -> None:
    run = Harness(bandit(4), BestFirst(iterations=5, k=4))
    run.search()
    assert entropy(run.tree.root) == pytest.approx(1.0)
    for edge in run.tree.root.edges[1:]:
        edge.visits = 0
    assert entropy(run.tree.root) == 0.0


def test_looking_ahead_that_turns_the_order_round_disagrees() -> None:
    run = Harness(deceptive_chain(2), BestFirst(iterations=20, k=2))
    run.search()
    assert stats(run.tree).agreement == 0.0, "left looks better and comes to less"


def test_looking_ahead_that_confirms_agrees() -> None:
    states = {
        "a": ToyState(edges={"l": ToyEdge(to="l"), "r": ToyEdge(to="r")}, looks=0.5),
        "l": ToyState(edges={"on": ToyEdge(to="won")}, looks=0.6),
        "r": ToyState(edges={"on": ToyEdge(to="lost")}, looks=0.3),
        "won": ToyState(reward=1.0),
        "lost": ToyState(reward=0.0),
    }
    run = Harness(graph(states), BestFirst(iterations=20, k=2))
    run.search()
    assert stats(run.tree).agreement == 1.0


def test_siblings_that_were_not_looked_beyond_are_no_agreement() -> None:
    run = Harness(bandit(4), BestFirst(iterations=5, k=4))
    run.search()
    assert stats(run.tree).agreement is None


def test_the_figures_of_a_part_are_those_below_its_state() -> None:
    run = Harness(deceptive_chain(3), BestFirst(iterations=20, k=2))
    run.search()
    child = run.tree.root.edges[0].child
    assert stats(run.tree, child).states == 3 and stats(run.tree, child).depth == 2
