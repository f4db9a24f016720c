"""Stochastic environments: the value of an action is the mean over its outcomes, as often as they come."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest

from exact.config import SearchConfig
from exact.context import Evaluation, Proposal
from exact.search.base import Algorithm, Done, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.mcts import MCTS
from exact.search.registry import algorithm
from exact.search.rules.backup import Backup, maximum, mean
from exact.search.tree import Edge, Tree
from tests.search.harness import check, check_idle, go

Outcomes = Sequence[tuple[float, str | float]]
"""Chances of the states, or of the rewards with which the episode ends, that an action leads to."""
World = Mapping[str, Mapping[str, Outcomes]]


class Chance:
    """Answers a search's asks from a stochastic world, whose states can be had again by snapshots."""

    def __init__(self, world: World, algorithm: Algorithm, *, start: str = "start", seed: int = 0) -> None:
        self.world, self.algorithm, self.dice = world, algorithm, random.Random(seed)
        self.tree = Tree()
        self.tree.stochastic, self.tree.root.fingerprint = True, start
        self.paid: dict[int, float] = {}
        self.steps = 0

    def search(self, most: int = 100_000) -> Done:
        for _ in range(most):
            answer = self.algorithm.ask(self.tree)
            if isinstance(answer, Done):
                check_idle(self.tree)
                return answer
            assert isinstance(answer, Selection)
            for _ in range(3):
                if answer.id not in self.tree.open:
                    break
                self.algorithm.tell(self.tree, answer, self.result(answer, self.tree.open[answer.id].left[0]))
        raise AssertionError("it never ends")

    def result(self, selection: Selection, need: Need) -> Result:
        node, target = self.tree.nodes[selection.node], self.tree.open[selection.id].target
        if need == "step":
            assert selection.edge is not None
            return self.step(selection, node.fingerprint, node.edges[selection.edge])
        assert target is not None
        if need == "value":
            value = self.paid[selection.id] if target.terminated else 0.5
            return Valued(evaluation=Evaluation(value=value))
        actions = list(self.world[target.fingerprint])
        if need == "sample":
            actions = [self.dice.choice(actions)]
        return Proposed(proposals=tuple(Proposal(action=go(name), prior=1 / len(actions)) for name in actions))

    def step(self, selection: Selection, state: str, edge: Edge) -> Stepped:
        self.steps += 1
        outcomes = self.world[state][str(edge.action.args[0])]
        [(_, came)] = self.dice.choices(outcomes, [chance for chance, _ in outcomes])
        if isinstance(came, str):
            return Stepped(fingerprint=came)
        self.paid[selection.id] = came
        return Stepped(fingerprint="", terminated=True)

    def worths(self) -> dict[str, float]:
        return {str(edge.action.args[0]): edge.q for edge in self.tree.root.edges}


def exact_values(world: World, depth: int) -> dict[tuple[str, str], float]:
    """Return the value of each action, by dynamic programming over `depth` steps; a state beyond them is worth 0.5."""
    states = dict.fromkeys(world, 0.5)
    worth: dict[tuple[str, str], float] = {}
    for _ in range(depth):
        worth = {
            (state, action): math.fsum(chance * (states[came] if isinstance(came, str) else came) for chance, came in outcomes)
            for state, actions in world.items()
            for action, outcomes in actions.items()
        }
        states = {state: max(worth[state, action] for action in actions) for state, actions in world.items()}
    return worth


def coins(*chances: float) -> World:
    return {"start": {f"coin {i}": [(chance, 1.0), (1 - chance, 0.0)] for i, chance in enumerate(chances)}}


def grid(slip: float = 0.2) -> World:
    """A row of five cells between a pit and a goal; a step slips the other way."""

    def cell(place: int) -> str | float:
        return 0.0 if place < 0 else 1.0 if place > 4 else f"cell {place}"

    return {f"cell {at}": {name: [(1 - slip, cell(at + way)), (slip, cell(at - way))] for name, way in (("left", -1), ("right", 1))}
            for at in range(5)}  # fmt: skip


SEARCHES = ["mcts", "gumbel", "abmcts"]


def made(name: str, iterations: int, **more: object) -> Algorithm:
    return algorithm(SearchConfig(algorithm=name, iterations=iterations, k=4, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("chance", [0.1, 0.3, 0.6, 0.9])
def test_a_coin_is_worth_its_chance(name: str, chance: float) -> None:
    found = []
    for seed in range(40):
        run = Chance(coins(chance), made(name, 32), seed=seed)
        run.search()
        found.append(run.worths()["coin 0"])
    error = math.sqrt(chance * (1 - chance) / (40 * 28))
    assert sum(found) / len(found) == pytest.approx(chance, abs=3 * error)


@pytest.mark.parametrize("name", SEARCHES)
def test_the_better_of_two_coins_is_committed(name: str) -> None:
    right = 0
    for seed in range(30):
        run = Chance(coins(0.3, 0.6), made(name, 64), seed=seed)
        run.search()
        [chosen] = run.algorithm.decide(run.tree).edges
        right += run.tree.root.edges[chosen].action.args == ("coin 1",)
    assert right >= 25


@pytest.mark.parametrize("backup", [mean, maximum])
@pytest.mark.parametrize("depth", [3, 4])
def test_a_grid_with_slip_is_worth_what_dynamic_programming_says(depth: int, backup: Backup) -> None:
    world = grid()
    exact = exact_values(world, depth)
    run = Chance(world, MCTS(iterations=3000, k=2, depth=depth, c=0.5 if backup is mean else 2.0, backup=backup), start="cell 2")
    run.search()
    worths = run.worths()
    assert worths["right"] == pytest.approx(exact["cell 2", "right"], abs=0.04)
    if backup is maximum:  # the mean counts what was tried on the way
        assert worths["left"] == pytest.approx(exact["cell 2", "left"], abs=0.06)
    assert worths["right"] > worths["left"]


def test_the_outcomes_of_an_action_come_in_the_shares_of_the_environment() -> None:
    world: World = {"start": {"go": [(0.5, "a"), (0.3, "b"), (0.2, 0.0)]}, "a": {"on": [(1.0, 1.0)]}, "b": {"on": [(1.0, 0.5)]}}
    run = Chance(world, MCTS(iterations=2000, k=2))
    run.search()
    [edge] = run.tree.root.edges
    shares = {node.fingerprint or "end": node.visits / edge.visits for node in edge.outcomes}
    assert shares["a"] == pytest.approx(0.5, abs=0.05) and shares["end"] == pytest.approx(0.2, abs=0.05)
    assert edge.q == pytest.approx(0.65, abs=0.05)


@pytest.mark.parametrize("name", SEARCHES)
def test_counts_hold_and_the_search_ends_in_random_worlds(name: str) -> None:
    for seed in range(60):
        dice = random.Random(seed)
        states = [f"s{i}" for i in range(dice.randint(1, 5))]
        world = {
            state: {f"a{i}": [(dice.random() + 0.05, dice.choice([*states, dice.random()])) for _ in range(dice.randint(1, 3))]
                    for i in range(dice.randint(1, 3))}
            for state in states
        }  # fmt: skip
        run = Chance(world, made(name, dice.randint(1, 40), depth=dice.randint(1, 4)), start="s0", seed=seed)
        run.search()
        check(run.tree)
        assert run.tree.iterations <= run.tree.allowed and run.algorithm.decide(run.tree).edges
