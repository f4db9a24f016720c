"""Algorithms by name, with every setting connected."""

from __future__ import annotations

import pytest

from exact.config import SearchConfig
from exact.environments.toy.known import bandit, chain
from exact.errors import UsageError
from exact.search.algorithms.greedy import Greedy
from exact.search.algorithms.react import React
from exact.search.mcts import MCTS
from exact.search.registry import algorithm
from tests.search.harness import Harness, failed


@pytest.mark.parametrize("name, kind", [("react", React), ("greedy", Greedy), ("mcts", MCTS)])
def test_a_name_gives_its_algorithm(name: str, kind: type) -> None:
    assert type(algorithm(SearchConfig(algorithm=name))) is kind  # type: ignore[arg-type]


def searched(**settings: float | str) -> Harness:
    run = Harness(chain(6), algorithm(SearchConfig(**settings)))  # type: ignore[arg-type]
    run.search()
    return run


def test_each_setting_of_mcts_has_an_effect() -> None:
    assert searched(iterations=9).tree.iterations == 9
    assert max(node.depth for node in searched(iterations=40, depth=3).tree.nodes) == 3
    assert {selection.k for selection in searched(k=5).asked} == {5}
    narrow, wide = (searched(c=c, iterations=30, revisit="repeat") for c in (0.0, 9.0))
    assert narrow.tree.root.edges[1].visits < wide.tree.root.edges[1].visits


def test_a_setting_outside_of_its_range_is_refused_when_a_search_is_made() -> None:
    with pytest.raises(UsageError, match=r"^search\.temperature is 0\.0: give a number, above 0 to 1000000$"):
        algorithm(SearchConfig(temperature=0.0))


@pytest.mark.parametrize("name", ["react", "greedy", "mcts"])
def test_retries_reach_every_algorithm(name: str) -> None:
    run = Harness(bandit(2), algorithm(SearchConfig(algorithm=name, retries=4)), lambda selection, need: failed("model"))  # type: ignore[arg-type]
    run.search()
    assert len(run.asked) == 5
