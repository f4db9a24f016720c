"""`mcts` against OpenSpiel's Python MCTS: the same nodes, visited as often, of the same worth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from exact.search.mcts import MCTS
from exact.search.rules import first_play, select
from tests.search.parity.trees import BUDGETS, TREES, Counts, Path, State, searched

mcts = pytest.importorskip("open_spiel.python.algorithms.mcts", reason="OpenSpiel is not installed: shells/setup.sh --parity")
pyspiel = pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: shells/setup.sh --parity")


class Position:
    """A tree as a game of one player; what of `pyspiel.State` its MCTS calls."""

    def __init__(self, state: State) -> None:
        self.state = state

    def clone(self) -> Position:
        return Position(self.state)

    def current_player(self) -> int:
        return 0

    def is_chance_node(self) -> bool:
        return False

    def is_terminal(self) -> bool:
        return not self.state.children

    def apply_action(self, action: int) -> None:
        self.state = self.state.children[action]

    def returns(self) -> list[float]:
        return [self.state.value]


class Judge(mcts.Evaluator):  # type: ignore[misc,name-defined]
    def evaluate(self, state: Position) -> list[float]:
        return [state.state.value]

    def prior(self, state: Position) -> list[tuple[int, float]]:
        return list(enumerate(state.state.priors))


def openspiel(tree: State, simulations: int, *, c: float, selection: Any) -> Counts:
    kind = SimpleNamespace(reward_model=pyspiel.GameType.RewardModel.TERMINAL, dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL)
    game = SimpleNamespace(get_type=lambda: kind, max_utility=lambda: 1.0)
    unshuffled = SimpleNamespace(shuffle=lambda actions: None)
    bot = mcts.MCTSBot(game, c, simulations, Judge(), solve=False, random_state=unshuffled, child_selection_fn=selection)
    counts = Counts()
    _count(bot.mcts_search(Position(tree)), (), counts)
    return counts


def _count(node: Any, path: Path, counts: Counts) -> None:
    if node.explore_count:
        counts.visits[path] = node.explore_count
        if path:
            counts.q[path] = node.total_reward / node.explore_count
        for child in node.children:
            _count(child, (*path, child.action), counts)


def ours(tree: State, iterations: int, **parts: Any) -> Counts:
    rule = select.rule(**{"first_play": first_play.zero, "ends": "value", **parts})
    return searched(tree, MCTS(iterations=iterations, k=99, depth=99, rule=rule, revisit="repeat", merging="none"))


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("c", [0.3, 1.5])
def test_puct_visits_what_openspiel_visits(name: str, c: float) -> None:
    for budget in BUDGETS:
        one = openspiel(TREES[name], budget, c=c, selection=mcts.SearchNode.puct_value)
        two = ours(TREES[name], budget, explore=select.PUCT, c=c)
        assert two.visits == one.visits, budget
        assert two.q == pytest.approx(one.q, abs=1e-12)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("c", [0.3, 1.5])
def test_uct_visits_what_openspiel_visits(name: str, c: float) -> None:
    for budget in BUDGETS:
        one = openspiel(TREES[name], budget, c=c, selection=mcts.SearchNode.uct_value)
        two = ours(TREES[name], budget, explore=select.UCT, c=c)
        assert two.visits == one.visits, budget
        assert two.q == pytest.approx(one.q, abs=1e-12)


@pytest.mark.parametrize("other", [{"ends": "explore"}, {"first_play": first_play.parent_value}])
def test_without_openspiels_conventions_the_visits_are_others(other: dict[str, Any]) -> None:
    """Each convention that is switched makes a difference, or there would be nothing to switch."""
    trees = TREES.values()
    found = [openspiel(tree, BUDGETS[-1], c=0.5, selection=mcts.SearchNode.puct_value).visits for tree in trees]
    assert [ours(tree, BUDGETS[-1], c=0.5).visits for tree in trees] == found
    assert [ours(tree, BUDGETS[-1], c=0.5, **other).visits for tree in trees] != found
