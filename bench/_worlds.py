"""Decision trees of known answer: the gain of a search over the policy alone, beside the measured quality of its judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from _noisy import BRANCHING, DEPTH, Episode, Noisy

from exact.calibration.measure import Prediction
from exact.config import SearchConfig
from exact.environments.toy.agents import Noise
from exact.environments.toy.graph import uniform
from exact.evaluation.plan import AGENTS
from exact.search.registry import algorithm

SEARCHES: Mapping[str, Callable[[int], SearchConfig]] = {
    "as on pages": lambda n: SearchConfig(**{**AGENTS["rmcts"]["search"], "iterations": n, "k": BRANCHING, "depth": DEPTH}),
    "default mcts": lambda n: SearchConfig(algorithm="mcts", iterations=n, k=BRANCHING, depth=DEPTH),
}
KINDS: tuple[Noise, ...] = ("independent", "persistent")
DEVIATIONS = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)
BUDGETS = (4, 8, 16, 32, 64)
STATES = 5
"""States of a game whose value and label are kept."""


class Cell(NamedTuple):
    """A search, a kind of noise, its deviation, and the evaluations allowed for each action."""

    search: str
    kind: Noise
    sd: float
    budget: int


class Played(msgspec.Struct, frozen=True):
    """What the games of a cell came to."""

    search: str
    kind: str
    sd: float
    budget: int
    outcomes: str
    """A digit a game: 1 for success."""
    states: list[tuple[int, float, int]]
    """Game, value and label of evaluated states: the first evaluation of each, and whether the policy alone succeeds from there."""


@dataclass(frozen=True)
class Recording(Noisy):
    """A game that keeps the first value of each evaluated state."""

    first: dict[str, float] = field(default_factory=dict)

    def value(self, state: str, draw: int) -> float:
        """Return the judge's value."""
        value = super().value(state, draw)
        self.first.setdefault(state, value)
        return value

    def alone(self, state: str) -> float:
        """Return whether the policy's first choices succeed from a state."""
        while not self.tree.is_end(state):
            state, _ = self.step(state, self.proposals(state)[0].action.key)
        return self.tree.outcome(state)


def played(cell: Cell, games: range) -> Played:
    """Play the games of a cell. Of each game STATES evaluated states are kept, drawn at random, or all where there are fewer."""
    outcomes, states = "", list[tuple[int, float, int]]()
    for seed in games:
        made = Noisy.make(seed, sd=cell.sd, kind=cell.kind)
        game = Recording(made.tree, made.policy, made.judge)
        outcomes += str(int(Episode(game, algorithm(SEARCHES[cell.search](cell.budget)), cell.budget).play()))
        drawn = sorted(game.first, key=lambda state: uniform(seed, "kept", state))[:STATES]
        states += [(seed, round(game.first[state], 3), int(game.alone(state))) for state in drawn]
    return Played(*cell, outcomes, states)


def alone(games: range) -> str:
    """Return the outcomes of the policy alone."""
    found = [Recording(made.tree, made.policy, made.judge).alone("") for made in map(Noisy.make, games)]
    return "".join(str(int(each)) for each in found)


def predictions(cell: Played) -> list[Prediction]:
    """Return the evaluated states of a cell. States of one game belong together."""
    return [Prediction(str(seed), at, value, bool(label)) for at, (seed, value, label) in enumerate(cell.states)]


def jobs(quick: bool) -> list[Cell]:
    """Return the cells to play."""
    budgets, deviations = ((16,), (0.0, 0.5)) if quick else (BUDGETS, DEVIATIONS)
    return [Cell(search, kind, sd, n) for search in SEARCHES for kind in KINDS for sd in deviations for n in budgets]


def named(cell: Played) -> dict[str, Any]:
    return {"search": cell.search, "noise": cell.kind, "sd": cell.sd, "evaluations": cell.budget}
