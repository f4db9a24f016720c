"""OpenSpiel's Python MCTS in a separate process. Runs in OpenSpiel's virtual environment; imports nothing of exact.

Arguments: branching, depth, c. A number of simulations on each line of stdin; for each a line on stdout:
`{"seconds": s, "game": s, "visits": [...]}`. Seconds are of the processor; `game` is the cost of the states alone: every call that the
search made to them and to the evaluator, repeated without the search.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from types import SimpleNamespace
from typing import Any

import pyspiel
from _synthetic import Game
from open_spiel.python.algorithms import mcts


class Position:
    """The part of `pyspiel.State` that the search calls, as cheap as Python allows."""

    __slots__ = ("depth", "game", "state")

    def __init__(self, game: Game, state: int, depth: int) -> None:
        self.game, self.state, self.depth = game, state, depth

    def clone(self) -> Position:
        return Position(self.game, self.state, self.depth)

    def current_player(self) -> int:
        return 0

    def is_chance_node(self) -> bool:
        return False

    def is_terminal(self) -> bool:
        return self.depth == self.game.depth

    def apply_action(self, action: int) -> None:
        self.state = self.game.child(self.state, action)
        self.depth += 1

    def returns(self) -> list[float]:
        return [self.game.value(self.state)]


class Instant:
    """Evaluator."""

    def __init__(self, game: Game) -> None:
        self.game = game

    def evaluate(self, state: Position) -> list[float]:
        return [self.game.value(state.state)]

    def prior(self, state: Position) -> list[tuple[int, float]]:
        return list(self.game.priors)


def search(game: Game, c: float, simulations: int) -> tuple[Any, float]:
    """Search, and return the root and the seconds taken."""
    kind = SimpleNamespace(reward_model=pyspiel.GameType.RewardModel.TERMINAL, dynamics=pyspiel.GameType.Dynamics.SEQUENTIAL)
    about = SimpleNamespace(get_type=lambda: kind, max_utility=lambda: 1.0)
    unshuffled = SimpleNamespace(shuffle=lambda actions: None)
    rule = mcts.SearchNode.puct_value
    bot = mcts.MCTSBot(about, c, simulations, Instant(game), solve=False, random_state=unshuffled, child_selection_fn=rule)
    start = time.process_time()
    root = bot.mcts_search(Position(game, 1, 0))
    return root, time.process_time() - start


def game_cost(game: Game, root: Any) -> float:
    """Seconds for the calls of the game alone: for every simulation that ended in a node, the way there and its evaluation."""
    judge, ends = Instant(game), list(_ends(root))
    start = time.process_time()
    for path, own, expanded in ends:
        for _ in range(own):
            position = Position(game, 1, 0).clone()
            for action in path:
                position.is_terminal()
                position.current_player()
                position.is_chance_node()
                position.apply_action(action)
            if position.is_terminal() or position.is_terminal():
                position.returns()
            else:
                judge.evaluate(position)
        if expanded:
            judge.prior(position)
    return time.process_time() - start


def _ends(root: Any) -> Any:
    """(path, simulations that ended there, whether it was expanded) of every node."""
    stack = [(root, ())]
    while stack:
        node, path = stack.pop()
        visited = [child for child in node.children if child.explore_count]
        yield path, node.explore_count - sum(child.explore_count for child in visited), bool(node.children)
        stack.extend((child, (*path, child.action)) for child in visited)


def main() -> None:
    branching, depth, c = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    game = Game(branching=branching, depth=depth)
    for line in sys.stdin:
        gc.collect()
        root, seconds = search(game, c, int(line))
        answer = {"seconds": seconds, "game": game_cost(game, root), "visits": [child.explore_count for child in root.children]}
        print(json.dumps(answer), flush=True)
        del root


if __name__ == "__main__":
    main()
