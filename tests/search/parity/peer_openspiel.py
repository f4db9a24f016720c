"""OpenSpiel's Python MCTS on explicit trees."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pyspiel
from open_spiel.python.algorithms import mcts

from tests.search.parity.trees import CHANCE_TREES, TREES, Counts, Dice, Path, State


class Position:
    """A tree as a game of one player; what of `pyspiel.State` its MCTS calls."""

    def __init__(self, state: State, dice: Dice, path: Path = ()) -> None:
        self.state, self.dice, self.path = state, dice, path

    def clone(self) -> Position:
        return Position(self.state, self.dice, self.path)

    def current_player(self) -> int:
        return int(pyspiel.PlayerId.CHANCE) if self.state.chances else 0

    def is_chance_node(self) -> bool:
        return bool(self.state.chances)

    def chance_outcomes(self) -> list[tuple[int, float]]:
        """The outcome that comes next, for certain: it has been drawn."""
        return [(self.dice.outcome(self.path, self.state), 1.0)]

    def is_terminal(self) -> bool:
        return not self.state.children

    def apply_action(self, action: int) -> None:
        self.state, self.path = self.state.children[action], (*self.path, action)

    def returns(self) -> list[float]:
        return [self.dice.worth(self.path, self.state)]


class Judge(mcts.Evaluator):  # type: ignore[misc]
    def evaluate(self, state: Position) -> list[float]:
        return [state.state.value]

    def prior(self, state: Position) -> list[tuple[int, float]]:
        return list(enumerate(state.state.priors))


def puct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, mcts.SearchNode.puct_value)


def uct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, mcts.SearchNode.uct_value)


class Passed(int):
    """The count of a node that was not visited, which no simulation ends at: an action's, behind which an outcome is drawn at once."""

    def __gt__(self, other: object) -> bool:
        return True


def chance_puct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, _passing(mcts.SearchNode.puct_value), CHANCE_TREES)


def chance_uct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, _passing(mcts.SearchNode.uct_value), CHANCE_TREES)


def _passing(selection: Any) -> Any:
    def scored(child: Any, visits: int, c: float) -> Any:
        if not child.explore_count:
            child.explore_count = Passed(0)
        return selection(child, visits, c)

    return scored


def _search(c: float, simulations: int, selection: Any, trees: Mapping[str, State] = TREES) -> dict[str, Counts]:
    kind = SimpleNamespace(reward_model=pyspiel.GameType.RewardModel.TERMINAL, dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL)
    game = SimpleNamespace(get_type=lambda: kind, max_utility=lambda: 1.0)
    unshuffled = SimpleNamespace(shuffle=lambda actions: None, choice=lambda actions, p: actions[0])
    found = {}
    for name, tree in trees.items():
        bot = mcts.MCTSBot(game, c, simulations, Judge(), solve=False, random_state=unshuffled, child_selection_fn=selection)
        _count(bot.mcts_search(Position(tree, Dice())), (), found.setdefault(name, Counts()))
    return found


def _count(node: Any, path: Path, counts: Counts) -> None:
    if node.explore_count:
        counts.visits[path] = node.explore_count
        if path:
            counts.q[path] = node.total_reward / node.explore_count
        for child in node.children:
            _count(child, (*path, child.action), counts)
