"""The oracle: sees how episodes ended in search, and is marked for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.agents.agent import build
from exact.agents.value.oracle import OracleValue
from exact.config import parse
from exact.context import Context, Taken
from exact.environments.base import Worlds
from exact.environments.toy import TOY_ACTIONS, ToyWorlds, deceptive_chain, toy_task
from exact.environments.toy_agents import ToyPolicy
from exact.environments.verdicts import TellingWorlds, Verdicts
from exact.errors import ModelError
from exact.models.base import ChatModel
from exact.runs.runner import Runner, create

TASK = toy_task("deceptive")


def no_model(role: str) -> ChatModel:
    raise AssertionError(f"{role} needs no model")


async def told(*links: str) -> Verdicts:
    """What a world tells of an episode of these steps."""
    verdicts = Verdicts()
    async with TellingWorlds(ToyWorlds(deceptive_chain(2)), verdicts).open(speculative=True) as world:
        await world.reset(TASK)
        for link in links:
            await world.step(TOY_ACTIONS.action("go", link))
    return verdicts


async def test_an_episode_that_ended_is_told_with_its_verdict() -> None:
    assert await told("right", "on") == {(TASK.id, 'go "right"', 'go "on"'): 1.0}
    assert await told("left", "on") == {(TASK.id, 'go "left"', 'go "on"'): 0.0}


async def test_of_an_episode_that_goes_on_nothing_is_told() -> None:
    assert await told("right") == {}


async def test_a_restored_state_has_its_own_way() -> None:
    verdicts = Verdicts()
    async with TellingWorlds(ToyWorlds(deceptive_chain(2)), verdicts).open(speculative=True) as world:
        await world.reset(TASK)
        start = await world.snapshot()
        await world.step(TOY_ACTIONS.action("go", "left"))
        await world.restore(start)
        await world.step(TOY_ACTIONS.action("go", "right"))
        await world.step(TOY_ACTIONS.action("go", "on"))
    assert list(verdicts) == [(TASK.id, 'go "right"', 'go "on"')]


async def context(*links: str, terminated: bool) -> Context:
    async with ToyWorlds(deceptive_chain(2)).open(speculative=True) as world:
        seen = await world.reset(TASK)
    taken = tuple(Taken(observation=seen, action=TOY_ACTIONS.action("go", link)) for link in links)
    return Context(task=TASK, instruction="", observation=seen, history=taken, terminated=terminated)


async def test_its_value_is_the_verdict_on_an_end_and_one_half_elsewhere() -> None:
    value = OracleValue(await told("right", "on"))
    assert (await value.evaluate(await context("right", "on", terminated=True))).value == 1.0
    assert (await value.evaluate(await context("right", terminated=False))).value == 0.5


async def test_an_end_that_it_was_not_told_of_is_an_error_and_no_value() -> None:
    with pytest.raises(ModelError, match="was not told how this episode ended"):
        await OracleValue({}).evaluate(await context("left", "on", terminated=True))


def test_only_an_oracles_worlds_tell_and_its_agent_is_marked() -> None:
    worlds = ToyWorlds(deceptive_chain(2))
    honest, oracle = (build(parse({"value": {"kind": kind}}), no_model) for kind in ("constant", "oracle"))
    assert (honest.oracle, honest.verdicts, honest.seeing(worlds)) == (False, None, worlds)
    assert oracle.oracle and isinstance(oracle.seeing(worlds), TellingWorlds)


async def test_a_run_with_an_oracle_finds_the_corridor_that_wins_and_says_that_it_is_one(tmp_path: Path) -> None:
    world = deceptive_chain(3)
    config = parse({"search": {"iterations": 12}, "value": {"kind": "oracle"}, "reflection": {"kind": "none"}})
    agent = build(config, no_model)

    @asynccontextmanager
    async def worlds(task: object) -> AsyncIterator[Worlds]:
        yield agent.seeing(ToyWorlds(world))

    runner = Runner(
        folder=create(tmp_path / "run", (toy_task(world),), config),
        config=config,
        open_worlds=worlds,
        build_agent=lambda config, models: type(agent)(policy=ToyPolicy(world), value=agent.value, oracle=True),
    )
    [line] = await runner.run()
    assert line.score == 1.0 and line.oracle
