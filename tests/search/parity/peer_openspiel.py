"""OpenSpiel's Python MCTS on explicit trees."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyspiel
from open_spiel.python.algorithms import mcts

from tests.search.parity.trees import TREES, Counts, Path, State


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


class Judge(mcts.Evaluator):  # type: ignore[misc]
    def evaluate(self, state: Position) -> list[float]:
        return [state.state.value]

    def prior(self, state: Position) -> list[tuple[int, float]]:
        return list(enumerate(state.state.priors))


def puct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, mcts.SearchNode.puct_value)


def uct(c: float, simulations: int) -> dict[str, Counts]:
    return _search(c, simulations, mcts.SearchNode.uct_value)


def _search(c: float, simulations: int, selection: Any) -> dict[str, Counts]:
    kind = SimpleNamespace(reward_model=pyspiel.GameType.RewardModel.TERMINAL, dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL)
    game = SimpleNamespace(get_type=lambda: kind, max_utility=lambda: 1.0)
    unshuffled = SimpleNamespace(shuffle=lambda actions: None)
    found = {}
    for name, tree in TREES.items():
        bot = mcts.MCTSBot(game, c, simulations, Judge(), solve=False, random_state=unshuffled, child_selection_fn=selection)
        _count(bot.mcts_search(Position(tree)), (), found.setdefault(name, Counts()))
    return found


def _count(node: Any, path: Path, counts: Counts) -> None:
    if node.explore_count:
        counts.visits[path] = node.explore_count
        if path:
            counts.q[path] = node.total_reward / node.explore_count
        for child in node.children:
            _count(child, (*path, child.action), counts)
