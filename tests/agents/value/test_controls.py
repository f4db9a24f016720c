"""The control value functions: the oracle reads how episodes ended in search, and is marked for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from exact.agents.agent import build_agent
from exact.agents.value.controls import OracleValue
from exact.config import parse
from exact.context import Context, Taken
from exact.environments.base import EnvironmentFactory, Fidelity
from exact.environments.oracle import STOP, EpisodeScores, InformedFactory, InformedForkableFactory, informed_factory
from exact.environments.toy.agents import ToyPolicy
from exact.environments.toy.factory import TOY_ACTIONS, ToyEdge, ToyFactory, ToyGraph, ToyState, deceptive_chain, toy_task
from exact.errors import ModelError
from exact.models.base import ChatModel
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create

TASK = toy_task("deceptive")


def office() -> ToyGraph:
    """Return an application that ends no episode itself; stopping in the second room of the left corridor succeeds."""
    rooms = {
        "hall": ToyState(text="The hall", edges={"left": ToyEdge(to="left"), "right": ToyEdge(to="right")}, answers={"": 0.0}),
        "left": ToyState(text="A corridor", edges={"on": ToyEdge(to="desk")}, answers={"": 0.0}),
        "right": ToyState(text="Another corridor", edges={"on": ToyEdge(to="yard")}, answers={"": 0.0}),
        "desk": ToyState(text="The desk", edges={"on": ToyEdge(to="yard")}, answers={"": 1.0}),
        "yard": ToyState(text="The yard", answers={"": 0.0}),
    }
    return ToyGraph(name="office", instruction="Go to the desk.", start="hall", states=rooms)


OFFICE = toy_task(office())


def no_model(role: str) -> ChatModel:
    raise AssertionError(f"{role} needs no model")


async def told(*links: str) -> EpisodeScores:
    """Return the scores that an environment records for an episode of these steps."""
    verdicts = EpisodeScores()
    async with InformedFactory(ToyFactory(deceptive_chain(2)), verdicts).open(simulation=True) as environment:
        await environment.reset(TASK)
        for link in links:
            await environment.step(TOY_ACTIONS.action("go", link))
    return verdicts


async def test_the_score_of_an_ended_episode_is_recorded() -> None:
    assert await told("right", "on") == {(TASK.id, 'go "right"', 'go "on"'): 1.0}
    assert await told("left", "on") == {(TASK.id, 'go "left"', 'go "on"'): 0.0}


async def test_no_score_is_recorded_for_an_open_episode() -> None:
    assert await told("right") == {}


async def test_a_restored_state_has_its_own_way() -> None:
    verdicts = EpisodeScores()
    async with InformedFactory(ToyFactory(deceptive_chain(2)), verdicts).open(simulation=True) as environment:
        await environment.reset(TASK)
        start = await environment.snapshot()
        await environment.step(TOY_ACTIONS.action("go", "left"))
        await environment.restore(start)
        await environment.step(TOY_ACTIONS.action("go", "right"))
        await environment.step(TOY_ACTIONS.action("go", "on"))
    assert list(verdicts) == [(TASK.id, 'go "right"', 'go "on"')]


async def walked(*links: str, fidelity: Fidelity = "full", simulation: bool = True) -> EpisodeScores:
    """Return the scores recorded during a walk through an office."""
    verdicts = EpisodeScores()
    async with informed_factory(ToyFactory(office(), fidelity=fidelity), verdicts).open(simulation=simulation) as environment:
        await environment.reset(OFFICE)
        for link in links:
            await environment.step(TOY_ACTIONS.action("go", link))
    return verdicts


async def test_where_environments_fork_each_searched_state_is_judged_as_if_the_agent_stopped_there() -> None:
    assert await walked("left", "on") == {(OFFICE.id, 'go "left"', STOP): 0.0, (OFFICE.id, 'go "left"', 'go "on"', STOP): 1.0}


async def test_no_score_is_recorded_without_forks_or_for_the_live_environment() -> None:
    assert await walked("left", "on", fidelity="replay") == {}
    assert await walked("left", "on", simulation=False) == {}


async def test_a_state_is_scored_in_a_fork_that_leaves_no_trace() -> None:
    inner = ToyFactory(office())
    environments = informed_factory(inner, EpisodeScores())
    async with environments.open(simulation=True) as environment:
        await environment.reset(OFFICE)
        await environment.step(TOY_ACTIONS.action("go", "left"))
        assert inner.counts.live == 1
        seen = (await environment.step(TOY_ACTIONS.action("go", "on"))).observation
    assert seen is not None and "The desk" in seen.text


async def test_a_fork_of_an_informed_environment_records_scores_from_its_snapshot_on() -> None:
    verdicts = EpisodeScores()
    environments = informed_factory(ToyFactory(office()), verdicts)
    assert isinstance(environments, InformedForkableFactory)
    async with environments.open(simulation=True) as environment:
        await environment.reset(OFFICE)
        await environment.step(TOY_ACTIONS.action("go", "left"))
        async with environments.fork(await environment.snapshot(), simulation=True) as branch:
            assert "A corridor" in branch.observation.text
            await branch.step(TOY_ACTIONS.action("go", "on"))
    assert verdicts[OFFICE.id, 'go "left"', 'go "on"', STOP] == 1.0


async def context(*links: str, terminated: bool) -> Context:
    async with ToyFactory(deceptive_chain(2)).open(simulation=True) as environment:
        seen = await environment.reset(TASK)
    taken = tuple(Taken(observation=seen, action=TOY_ACTIONS.action("go", link)) for link in links)
    return Context(task=TASK, instruction="", observation=seen, history=taken, terminated=terminated)


async def test_the_oracle_value_is_the_score_of_an_end_and_one_half_elsewhere() -> None:
    value = OracleValue(await told("right", "on"))
    assert (await value.evaluate(await context("right", "on", terminated=True))).value == 1.0
    assert (await value.evaluate(await context("right", terminated=False))).value == 0.5


async def test_a_state_in_which_stopping_would_win_is_worth_it_and_one_in_which_it_would_not_says_nothing() -> None:
    value = OracleValue({(TASK.id, 'go "left"', STOP): 1.0, (TASK.id, 'go "right"', STOP): 0.0})
    won, other = [await value.evaluate(await context(link, terminated=False)) for link in ("left", "right")]
    assert (won.value, won.informed) == (1.0, True)
    assert (other.value, other.informed) == (0.5, True)


async def test_an_end_without_a_recorded_score_is_an_error() -> None:
    with pytest.raises(ModelError, match="no score is recorded for this ended episode"):
        await OracleValue({}).evaluate(await context("left", "on", terminated=True))


def test_only_an_oracles_environments_tell_and_its_agent_is_marked() -> None:
    environments = ToyFactory(deceptive_chain(2))
    honest, oracle = (build_agent(parse({"value": {"kind": kind}}), no_model) for kind in ("constant", "oracle"))
    assert (honest.oracle, honest.episode_scores, honest.informed_factory(environments)) == (False, None, environments)
    assert oracle.oracle and isinstance(oracle.informed_factory(environments), InformedForkableFactory)


async def attempt(tmp_path: Path, environment: ToyGraph, fidelity: Fidelity) -> ResultLine:
    """Run one attempt by an oracle."""
    search = {"iterations": 12, "backup": "max"}
    config = parse({"search": search, "value": {"kind": "oracle"}, "reflection": {"kind": "none"}, "limits": {"actions": 4}})
    agent = build_agent(config, no_model)

    @asynccontextmanager
    async def environments(task: object) -> AsyncIterator[EnvironmentFactory]:
        yield agent.informed_factory(ToyFactory(environment, fidelity=fidelity))

    runner = Runner(
        folder=create(tmp_path / fidelity, (toy_task(environment),), config),
        config=config,
        open_environments=environments,
        build_agent=lambda config, models: type(agent)(policy=ToyPolicy(environment), value=agent.value, oracle=True),
    )
    [line] = await runner.run()
    return line


async def test_a_run_with_an_oracle_finds_the_corridor_that_wins_and_says_that_it_is_one(tmp_path: Path) -> None:
    line = await attempt(tmp_path, deceptive_chain(3), "replay")
    assert line.score == 1.0 and line.oracle and line.informed


async def test_an_oracle_knows_where_to_stop_and_without_forks_is_counted_as_uninformed(tmp_path: Path) -> None:
    line = await attempt(tmp_path, office(), "environment")
    assert line.score == 1.0 and line.informed
    rooms = {name: ToyState(text=name, edges={"on": ToyEdge(to=to)}) for name, to in (("a", "b"), ("b", "c"), ("c", "a"))}
    nowhere = ToyGraph(name="nowhere", instruction="", start="a", states=rooms)
    assert (await attempt(tmp_path, nowhere, "replay")).informed == 0
