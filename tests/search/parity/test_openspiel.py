"""`mcts` against OpenSpiel's Python MCTS: the same nodes, visited as often, of the same worth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from exact.search.mcts import MCTS
from exact.search.rules import select
from tests.search.parity.recorded import Peer, peer
from tests.search.parity.trees import BUDGETS, CHANCE_TREES, TREES, Counts, State, searched, searched_by_chance


@pytest.fixture(scope="module")
def openspiel(request: pytest.FixtureRequest) -> Iterator[Peer]:
    with peer(request.config, "openspiel", ("open-spiel",), digits=13) as found:
        yield found


def mcts(iterations: int, **parts: Any) -> MCTS:
    rule = select.rule(**{"first_play": select.zero, "ends": "value", **parts})
    return MCTS(iterations=iterations, k=99, depth=99, rule=rule, revisit="repeat", merging="none")


def ours(tree: State, iterations: int, **parts: Any) -> Counts:
    return searched(tree, mcts(iterations, **parts))


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("c", [0.3, 1.5])
@pytest.mark.parametrize(("search", "explore"), [("puct", select.PUCT), ("uct", select.UCT)])
def test_each_rule_visits_what_openspiel_visits(openspiel: Peer, search: str, explore: Any, c: float, budget: int) -> None:
    for name, one in openspiel(search, c, budget).items():
        two = ours(TREES[name], budget, explore=explore, c=c)
        assert two.visits == one.visits, name
        assert two.q == pytest.approx(one.q, abs=1e-12), name


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("c", [0.3, 1.5])
@pytest.mark.parametrize(("search", "explore"), [("chance_puct", select.PUCT), ("chance_uct", select.UCT)])
def test_each_rule_visits_what_openspiel_visits_by_chance(openspiel: Peer, search: str, explore: Any, c: float, budget: int) -> None:
    """Each step of an action has the same outcome for both: the actions and the outcomes are visited as often."""
    for name, one in openspiel(search, c, budget).items():
        two = searched_by_chance(CHANCE_TREES[name], mcts(budget, explore=explore, c=c))
        assert two.visits == one.visits, name
        assert {path: one.q[path] for path in two.q} == pytest.approx(two.q, abs=1e-12), name


@pytest.mark.parametrize("other", [{"ends": "explore"}, {"first_play": select.parent_value}])
def test_without_openspiels_conventions_the_visits_are_others(openspiel: Peer, other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    found = {name: counts.visits for name, counts in openspiel("puct", 0.5, BUDGETS[-1]).items()}
    assert {name: ours(tree, BUDGETS[-1], c=0.5).visits for name, tree in TREES.items()} == found
    assert {name: ours(tree, BUDGETS[-1], c=0.5, **other).visits for name, tree in TREES.items()} != found
