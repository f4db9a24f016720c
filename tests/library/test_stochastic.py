"""Stochastic environments of a user's own: declared, noticed, and right."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path
from typing import Any

import pytest

import exact
from exact import ActionSpace, Capabilities, Evaluation, Observation, Proposal, Snapshot, Task, Transition
from exact.config import Config
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ice
from exact.search.tree import Tree

CHANCES = {"left": 0.3, "right": 0.6}
SEEDS = itertools.count()


class Coins(exact.BaseEnvironment):
    """Flip one of two coins, then take what lies there."""

    capabilities = Capabilities(fidelity="replay", isolated=True, deterministic=False, evaluates=False)
    actions = ActionSpace(["left", "right", "take"])

    def __init__(self) -> None:
        self.dice = random.Random(next(SEEDS))
        self.lies = "nothing"

    async def reset(self, task: Task) -> Observation:
        self.lies = "nothing"
        return self.seen()

    async def step(self, action: exact.Action) -> Transition:
        if action.name == "take":
            return Transition(observation=None, terminated=True)
        self.lies = "gold" if self.dice.random() < CHANCES[action.name] else "sand"
        return Transition(observation=self.seen())

    def seen(self) -> Observation:
        return Observation(text=f"There is {self.lies}.")


class Presumed(Coins):
    capabilities = Capabilities(fidelity="replay", isolated=True, evaluates=False)


class Kept(Coins):
    """The same with snapshots."""

    capabilities = Capabilities(fidelity="full", isolated=True, deterministic=False, evaluates=False)

    async def snapshot(self) -> Snapshot:
        return Snapshot(id=self.lies, fidelity="full", fingerprint=self.seen().fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        self.lies = snapshot.id
        return self.seen()


class Flip:
    async def propose(self, context: exact.Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        names = ["left", "right"] if "nothing" in context.observation.text else ["take"]
        return tuple(Proposal(action=actions.action(name), prior=1 / len(names)) for name in names)


class Worth:
    async def evaluate(self, context: exact.Context) -> Evaluation:
        return Evaluation(value=1.0 if "gold" in context.observation.text else 0.0 if "sand" in context.observation.text else 0.5)


def worths(tree: Tree) -> dict[str, float]:
    return {edge.action.name: edge.q for edge in tree.root.edges}


@pytest.mark.parametrize("kind", [Coins, Kept])
async def test_an_action_is_worth_the_mean_of_what_comes(kind: type[Coins]) -> None:
    found = list[dict[str, float]]()
    for seed in range(8):
        tree = await exact.search(kind, policy=Flip(), value=Worth(), iterations=120, seed=seed, settings={"depth": 2})
        found.append(worths(tree))
    for name, chance in CHANCES.items():
        error = math.sqrt(chance * (1 - chance) / (8 * 20))
        assert sum(each[name] for each in found) / 8 == pytest.approx(chance, abs=4 * error), name


class Ending(Coins):
    """A flip ends the episode, and shows what lies there or nothing."""

    shows = True

    async def step(self, action: exact.Action) -> Transition:
        came = (await super().step(action)).observation
        return Transition(observation=came if self.shows else None, terminated=True)


class Dark(Ending):
    shows = False


class EndWorth:
    """Tells ends apart by what the environment gave with them."""

    def __init__(self) -> None:
        self.told = set[tuple[str, str]]()

    async def evaluate(self, context: exact.Context) -> Evaluation:
        if not context.terminated:
            return Evaluation(value=0.5)
        self.told.add((context.observation.text, context.end.text if context.end else ""))
        return Evaluation(value=0.5 if context.end is None else float("gold" in context.end.text))


@pytest.mark.parametrize(("kind", "shown"), [(Ending, {"There is gold.", "There is sand."}), (Dark, {""})])
async def test_a_value_function_is_told_what_an_end_showed_and_no_more(kind: type[Coins], shown: set[str]) -> None:
    value = EndWorth()
    tree = await exact.search(kind, policy=Flip(), value=value, iterations=300, settings={"c": 8.0})
    assert value.told == {("There is nothing.", text) for text in shown}, "and the state before it"
    expected = CHANCES if kind is Ending else dict.fromkeys(CHANCES, 0.5)
    assert worths(tree) == {name: pytest.approx(worth, abs=0.17) for name, worth in expected.items()}


class Doors(exact.BaseEnvironment):
    """Gold lies behind one of two doors, at each reset behind another. Listening tells which one, 85 times in 100."""

    capabilities = Capabilities(fidelity="replay", isolated=True, deterministic=False, evaluates=False)
    actions = ActionSpace(["listen", "left", "right"])

    def __init__(self) -> None:
        self.dice = random.Random(next(SEEDS))

    async def reset(self, task: Task) -> Observation:
        self.behind, self.opened = self.dice.choice(["left", "right"]), ""
        return Observation(text="There is nothing.")

    async def step(self, action: exact.Action) -> Transition:
        if self.opened:
            return Transition(observation=Observation(text=self.opened))
        if action.name == "listen":
            other = {"left": "right", "right": "left"}[self.behind]
            return Transition(observation=Observation(text=f"A sound at the {self.behind if self.dice.random() < 0.85 else other}."))
        self.opened = "There is gold." if action.name == self.behind else "There is sand."
        return Transition(observation=Observation(text=self.opened))


class EachDoor:
    async def propose(self, context: exact.Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        return tuple(Proposal(action=actions.action(name), prior=1 / 3) for name in ("listen", "left", "right"))


async def test_what_is_hidden_is_worth_what_the_belief_says() -> None:
    found = list[dict[str, float]]()
    for seed in range(4):
        settings = {"depth": 2, "backup": "max", "c": 1.0, "merging": "none"}
        found.append(worths(await exact.search(Doors, policy=EachDoor(), value=Worth(), iterations=300, seed=seed, settings=settings)))
    for name, exactly, error in (("listen", 0.85, 0.05), ("left", 0.5, 0.21), ("right", 0.5, 0.21)):  # a door is tried a dozen times
        assert sum(each[name] for each in found) / 4 == pytest.approx(exactly, abs=error), name


async def test_what_was_not_declared_is_noticed_once_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = Config.parse({"search": {"iterations": 40, "depth": 2}, "limits": {"actions": 2}, "reflection": {"kind": "none"}})
    agent = exact.Agent(policy=Flip(), value=Worth())
    for kind, said in ((Presumed, 1), (Coins, 0)):
        solution = await exact.solve(
            Task(id="coins/one", instruction="Take gold."), agent=agent, config=config, environments=kind, out=tmp_path / kind.__name__
        )
        assert solution.tree.stochastic and solution.run is not None
        assert solution.run.tree(solution.result.task).stochastic
        assert "another outcome of the action, which came" in next((tmp_path / kind.__name__).glob("tasks/*/report.html")).read_text()
        assert sum("declare `deterministic=False`" in each.message for each in caplog.records) == said
        caplog.clear()


class Sure(Presumed):
    """Each flip finds the same, and taking it ends the episode."""

    async def step(self, action: exact.Action) -> Transition:
        self.dice = random.Random(0)
        return await super().step(action)


async def test_an_end_that_came_as_it_was_foreseen_is_no_chance(caplog: pytest.LogCaptureFixture) -> None:
    config = Config.parse({"search": {"iterations": 20, "depth": 2}, "limits": {"actions": 2}, "reflection": {"kind": "none"}})
    task, agent = Task(id="coins/one", instruction="Take gold."), exact.Agent(policy=Flip(), value=Worth())
    solution = await exact.solve(task, agent=agent, config=config, environments=Sure)
    assert solution.tree.root.terminated and not solution.tree.stochastic
    assert not [each.message for each in caplog.records if "different states" in each.message]


def test_the_ice_is_left_for_the_bridge() -> None:
    right = 0
    for seed in range(6):
        graph = ice(seed=seed)
        parts: dict[str, Any] = {"policy": ToyPolicy(graph), "value": ToyValue(graph), "settings": {"depth": 6, "k": 2}}
        tree = exact.search_sync(ToyFactory(graph), iterations=80, seed=seed, **parts)
        right += "bridge" in max(tree.root.edges, key=lambda edge: edge.q).action.key
    assert right >= 5
