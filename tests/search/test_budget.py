"""Iterations: a search uses no more than were granted, and one is enough to commit an action."""

from __future__ import annotations

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import ToyEdge, ToyState, bandit
from exact.search.base import Selection, Wait
from exact.search.registry import algorithm
from tests.search.harness import Harness, graph

ALL = ("mcts", "gumbel", "flat_halving", "abmcts", "greedy", "react", "best_first", "best_of_n", "beam", "tot_bfs", "tot_dfs")


@pytest.mark.parametrize("name, settings", [*((name, {}) for name in ALL), ("mcts", {"expansion": "eager"}), ("mcts", {"widening": 1.0})])
def test_one_iteration_is_enough_to_commit_an_action(name: str, settings: dict[str, object]) -> None:
    run = Harness(bandit(3, rewards=(0.0, 1.0, 0.0)), algorithm(SearchConfig(algorithm=name, iterations=1, **settings)))  # type: ignore[arg-type]
    run.search()
    assert run.algorithm.decide(run.tree).edges


@pytest.mark.parametrize("name", ["mcts", "gumbel", "abmcts"])
@pytest.mark.parametrize("workers", [1, 4])
def test_confirmations_are_taken_from_the_budget(name: str, workers: int) -> None:
    """Nine ends look good, and each asks for a confirmation, more of which are in flight than iterations are left."""
    good = {f"e{i}": ToyState(reward=0.9) for i in range(9)}
    edges = {f"l{i}": ToyEdge(to=f"e{i}", prior=1 / 9) for i in range(9)}
    environment = graph({"a": ToyState(edges=edges, looks=0.5), **good})
    config = SearchConfig(algorithm=name, iterations=5, k=9, evaluations=2, enough=0.5)
    run = Harness(environment, algorithm(config))
    opened: list[Selection] = []
    for _ in range(200):
        asked = run.ask() if len(opened) < workers else Wait()
        if isinstance(asked, Selection):
            opened.append(asked)
        elif opened:
            run.meet(opened.pop(0))
        elif not isinstance(asked, Wait):
            break
    assert 0 < run.tree.iterations <= 5


@pytest.mark.parametrize("name", ["mcts", "gumbel", "flat_halving", "abmcts", "best_first", "beam", "tot_bfs", "tot_dfs"])
def test_after_a_refused_commit_the_other_actions_are_searched_before_the_next_decision(name: str) -> None:
    """Otherwise what is left is chosen from what the search had found worse."""
    run = Harness(bandit(4, rewards=(0.9, 0.1, 0.2, 0.3)), algorithm(SearchConfig(algorithm=name, iterations=3, evaluations=1)))
    run.search()
    before = run.tree.iterations
    run.algorithm.refuse(run.tree, run.algorithm.decide(run.tree).edges[0], "[3] is not shown")
    run.search()
    assert run.tree.iterations > before
