"""In rounds, four workers grow the same tree whatever comes first, and an interrupted attempt grows it too."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from exact.agents.agent import Agent
from exact.config import Config
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import ActionSpace
from exact.environments.toy.environment import Faults
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import ToyGraph, deceptive_chain, form, maze
from exact.runs.journal import events as ev
from tests.runs.test_resume import Killed, committed, journal, kill_at, moves, repeated_facts, tree
from tests.runs.toys import config, toy_agent, toy_runner

Pause = Callable[[], Awaitable[None]]


class Slow:
    """An agent that takes its time."""

    def __init__(self, agent: Agent, pause: Pause) -> None:
        self._agent, self._pause = agent, pause

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        await self._pause()
        return await self._agent.policy.propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        await self._pause()
        return await self._agent.value.evaluate(context)


def by_chance(seed: int) -> Pause:
    """Yield to other tasks a random number of times."""
    dice = random.Random(seed)

    async def pause() -> None:
        for _ in range(dice.randint(0, 12)):
            await asyncio.sleep(0)

    return pause


async def run(folder: Path, environment: ToyGraph, seed: int, faults: Faults | None = None, **search: object) -> list[ev.AnyEvent]:
    settings = config(search={"iterations": 16, "k": 4, "workers": 4, "order": "selection", **search})
    runner = toy_runner(folder, ToyFactory(environment, latency=by_chance(seed), faults=faults or Faults(), fidelity="replay"), settings)

    def build(config: Config, models: object) -> Agent:
        slow = Slow(toy_agent(environment, 0.1)(config, models), by_chance(seed + 1))  # type: ignore[arg-type]
        return Agent(policy=slow, value=slow)

    runner.build_agent = build
    await runner.run()
    return journal(folder)


WAYS: dict[str, dict[str, object]] = {
    "replan": {},
    "plan and promote": {"commit": "plan", "commit_by": "fork"},
    "speculative": {"expansion": "speculative"},
    "gumbel": {"algorithm": "gumbel"},
    "beam": {"algorithm": "beam"},
    "best of n": {"algorithm": "best_of_n"},
}


@pytest.mark.parametrize("way", WAYS)
async def test_four_workers_grow_the_same_tree_for_any_order_of_results(way: str, tmp_path: Path) -> None:
    for environment in (maze(), deceptive_chain(3)):
        whole = [await run(tmp_path / f"{environment.name}-{seed}", environment, seed, **WAYS[way]) for seed in range(6)]
        assert all(moves(each) == moves(whole[0]) for each in whole)
        assert len({tree(tmp_path / f"{environment.name}-{seed}") for seed in range(6)}) == 1


@pytest.mark.parametrize("way", WAYS)
async def test_killed_at_any_write_and_gone_on_with_it_is_the_same_tree(way: str, tmp_path: Path) -> None:
    environment, dice = form(2), random.Random(way)
    whole = await run(tmp_path / "whole", environment, 0, **WAYS[way])
    for nth in dice.sample(range(1, len(whole)), min(40, len(whole) - 1)):
        folder = tmp_path / str(nth)
        with pytest.MonkeyPatch.context() as patch:
            kill_at(patch, nth, written=dice.random() < 0.5)
            with pytest.raises(Killed):
                await run(folder, environment, nth, **WAYS[way])
        resumed = await run(folder, environment, nth + 1, **WAYS[way])
        assert moves(resumed) == moves(whole), f"killed at write {nth}"
        assert repeated_facts(resumed) == [] and tree(folder) == tree(tmp_path / "whole")


async def test_the_order_of_arrival_is_random(tmp_path: Path) -> None:
    """Else the tests above could not fail."""
    whole = [moves(await run(tmp_path / str(seed), maze(), seed, order="arrival")) for seed in range(6)]
    assert any(each != whole[0] for each in whole)


async def test_environments_that_break_do_not_hold_up_a_round(tmp_path: Path) -> None:
    events = await run(tmp_path / "run", maze(), 3, Faults(fail_every=5))
    assert isinstance(events[-1], ev.Finished) and any(isinstance(event, ev.Failed) for event in events)
    assert committed(events)


@pytest.mark.parametrize("limits", [{"transitions": 7}, {"evaluations": 5}])
async def test_a_round_that_a_budget_cuts_short_ends(limits: dict[str, int], tmp_path: Path) -> None:
    events = await run(tmp_path / "run", maze(), 1, limits=limits)
    assert isinstance(events[-1], ev.Finished) and committed(events)
