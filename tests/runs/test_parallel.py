"""Several pieces of work of one tree at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from exact.action import ActionSpace
from exact.agents.agent import Agent
from exact.config import Config
from exact.context import Context, Evaluation, Proposal
from exact.environments.toy.factory import Faults, ToyEnvironment, ToyFactory
from exact.environments.toy.known import chain, form, maze
from exact.errors import ModelError
from exact.runs.journal import events as ev
from exact.runs.runner import Runner
from tests.runs.test_resume import journal, repeated_facts
from tests.runs.toys import config, toy_runner


class Gauge:
    """Number of calls inside at once, and the largest number."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def __call__(self) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(5):
            await asyncio.sleep(0)
        self.now -= 1


class Gauged:
    """A policy and a value function that take their time."""

    def __init__(self, agent: Agent, gauge: Gauge) -> None:
        self._agent, self._gauge = agent, gauge

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        await self._gauge()
        return await self._agent.policy.propose(context, actions, k)

    async def evaluate(self, context: Context) -> Evaluation:
        await self._gauge()
        return await self._agent.value.evaluate(context)


def gauged(runner: Runner, gauge: Gauge) -> Runner:
    """Return the runner with a measured agent."""
    good = runner.build_agent
    assert good is not None

    def build(settings: Config, models: Callable[..., object]) -> Agent:
        agent = good(settings, models)  # type: ignore[arg-type]
        parts = Gauged(agent, gauge)
        return replace(agent, policy=parts, value=parts)

    runner.build_agent = build
    return runner


def searched(**search: object) -> Config:
    return config(search={"algorithm": "mcts", "iterations": 24, "k": 4, "prefetch": 0, **search})


@pytest.mark.parametrize("workers", [1, 2, 4])
async def test_calls_and_steps_under_way_equal_the_number_of_workers(workers: int, tmp_path: Path) -> None:
    calls, steps = Gauge(), Gauge()
    environments = ToyFactory(form(3), latency=steps)
    (line,) = await gauged(toy_runner(tmp_path, environments, searched(workers=workers)), calls).run()
    assert line.score == 1.0
    assert calls.most == workers and steps.most == workers
    assert environments.counts.opened == environments.counts.closed <= 2 * workers


async def test_environments_are_opened_only_when_they_are_needed(tmp_path: Path) -> None:
    environments = ToyFactory(chain(2))
    await toy_runner(tmp_path, environments, config(search={"algorithm": "react", "workers": 8})).run()
    assert environments.counts.opened == 1, "nothing is tried out, so there is the live environment alone"


async def test_where_environments_may_not_be_used_at_once_one_worker_steps_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, steps, real = Gauge(), Gauge(), ToyEnvironment.__init__

    def init(self: ToyEnvironment, *args: object, **more: object) -> None:
        real(self, *args, **more)  # type: ignore[arg-type]
        import msgspec

        self.capabilities = msgspec.structs.replace(self.capabilities, concurrent=False)

    monkeypatch.setattr(ToyEnvironment, "__init__", init)
    environments = ToyFactory(form(3), latency=steps)
    (line,) = await gauged(toy_runner(tmp_path, environments, searched(workers=4)), calls).run()
    assert line.score == 1.0
    assert (steps.most, environments.counts.opened) == (1, 2)
    assert calls.most > 1, "who waits for the environment does not keep others from thinking"


async def test_value_and_proposals_are_asked_for_at_once_by_choice(tmp_path: Path) -> None:
    calls = Gauge()
    await gauged(toy_runner(tmp_path, ToyFactory(form(3)), searched(expansion="speculative")), calls).run()
    assert calls.most == 2


async def test_the_search_waits_without_polling(tmp_path: Path) -> None:
    await gauged(toy_runner(tmp_path, ToyFactory(maze(), latency=Gauge()), searched(workers=8)), Gauge()).run()
    events = journal(tmp_path)
    waits = sum(isinstance(event, ev.Asked) and type(event.answer).__name__ == "Wait" for event in events)
    assert 0 < waits <= sum(isinstance(event, ev.Told | ev.Released | ev.Committed) for event in events) + 1


async def test_reservations_are_all_given_back_at_the_end(tmp_path: Path) -> None:
    states = []
    runner = toy_runner(tmp_path, ToyFactory(form(3), faults=Faults(fail_every=5), latency=Gauge()), searched(workers=4))
    runner.watch = lambda task, state, event: states.append(state)
    await gauged(runner, Gauge()).run()
    state = states[-1]
    assert not state.search.tree.open
    assert {node.in_flight for node in state.search.tree.nodes} == {0}
    assert set(state.spending.task.reserved.values()) <= {0.0}


class Moody:
    """A value function that fails every third time."""

    def __init__(self, agent: Agent) -> None:
        self._agent, self._calls = agent, 0

    async def evaluate(self, context: Context) -> Evaluation:
        self._calls += 1
        await asyncio.sleep(0)
        if self._calls % 3 == 0:
            raise ModelError("the server is out of order")
        return await self._agent.value.evaluate(context)


@pytest.mark.parametrize("workers", [1, 4])
async def test_an_outage_never_becomes_a_value(workers: int, tmp_path: Path) -> None:
    runner = toy_runner(tmp_path, ToyFactory(form(2)), searched(workers=workers))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda settings, models: replace(good(settings, models), value=Moody(good(settings, models)))
    (line,) = await runner.run()
    events = journal(tmp_path)
    told = Counter(type(event.result).__name__ for event in events if isinstance(event, ev.Told))
    failed = [event for event in events if isinstance(event, ev.Failed)]
    assert told["Failure"] == len(failed) == line.failures > 0
    assert line.evaluations == told["Valued"] + sum(isinstance(event, ev.Judged) and event.bought for event in events)
    assert line.score == 1.0


async def test_a_cancelled_attempt_closes_all_its_environments_and_leaves_no_task(tmp_path: Path) -> None:
    stepping = asyncio.Event()

    async def forever() -> None:
        if environments.counts.steps == 3:
            stepping.set()
        await asyncio.get_running_loop().create_future()

    environments = ToyFactory(form(3), latency=forever)
    running = asyncio.create_task(toy_runner(tmp_path, environments, searched(workers=4)).run())
    await stepping.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert environments.counts.opened == environments.counts.closed > 2
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_unrecoverable_error_of_one_worker_ends_the_attempt_with_it(tmp_path: Path) -> None:
    class Broken(Moody):
        async def evaluate(self, context: Context) -> Evaluation:
            if context.history:
                raise ZeroDivisionError("a bug")
            return await self._agent.value.evaluate(context)

    environments = ToyFactory(form(3))
    runner = toy_runner(tmp_path, environments, searched(workers=4))
    good = runner.build_agent
    assert good is not None
    runner.build_agent = lambda settings, models: replace(good(settings, models), value=Broken(good(settings, models)))
    (line,) = await runner.run()
    assert line.status == "failed" and "value.evaluate: Broken raised ZeroDivisionError: a bug" in line.reason
    assert environments.counts.opened == environments.counts.closed


async def test_work_below_the_committed_action_continues_after_a_commit(tmp_path: Path) -> None:
    gauge = Gauge()
    settings = searched(workers=6, iterations=12)
    (line,) = await gauged(toy_runner(tmp_path, ToyFactory(maze(), latency=gauge), settings), Gauge()).run()
    events = journal(tmp_path)
    assert line.score == 1.0 and repeated_facts(events) == []
    told = [event.selection for event in events if isinstance(event, ev.Told | ev.Late)]
    asked = [event.answer.id for event in events if isinstance(event, ev.Asked) and type(event.answer).__name__ == "Selection"]
    assert set(told) <= set(asked)
