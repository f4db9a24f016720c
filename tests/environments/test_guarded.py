"""Environments held to their contract."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from exact.environments.base import ForkableFactory, Transition
from exact.environments.guarded import guarded_factory
from exact.environments.reward import reward_of
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, toy_task
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation


def broken(*_: object, **__: object) -> Any:
    raise KeyError("x")


@asynccontextmanager
async def unclosable(*_: object, **__: object) -> AsyncIterator[ToyEnvironment]:
    async with ToyFactory(chain()).open(simulation=True) as environment:
        yield environment
    raise KeyError("x")


@pytest.mark.parametrize("method", ["snapshot", "restore", "fork"])
async def test_a_snapshot_or_a_return_that_raises_is_a_refusal_that_is_noted(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    factory: Any = guarded_factory(ToyFactory(chain()), notes.append)
    assert isinstance(factory, ForkableFactory)
    async with factory.open(simulation=True) as environment:
        await environment.reset(toy_task(chain()))
        snapshot = await environment.snapshot()
        monkeypatch.setattr(ToyFactory if method == "fork" else ToyEnvironment, method, broken)
        with pytest.raises(EnvironmentFailure):
            match method:
                case "snapshot":
                    await environment.snapshot()
                case "restore":
                    await environment.restore(snapshot)
                case "fork":
                    await factory.fork(snapshot, simulation=True).__aenter__()
    assert len(notes) == 1 and notes[0].startswith(f"environment.{method}: ")


async def test_a_refusal_within_the_contract_is_not_noted() -> None:
    notes: list[str] = []
    async with guarded_factory(ToyFactory(chain(), fidelity="replay"), notes.append).open(simulation=True) as environment:
        await environment.reset(toy_task(chain()))
        with pytest.raises(EnvironmentFailure, match="has no snapshots"):
            await environment.snapshot()
        with pytest.raises(ActionError, match="leads nowhere"):
            await environment.step(environment.actions.action("go", "nowhere"))
    assert not notes


async def test_an_environment_that_fails_while_it_is_closed_costs_nothing_but_a_note() -> None:
    notes: list[str] = []
    factory: Any = ToyFactory(chain())
    factory.open = unclosable
    async with guarded_factory(factory, notes.append).open(simulation=True) as environment:
        await environment.reset(toy_task(chain()))
    assert len(notes) == 1 and notes[0].startswith("environment.close: ToyEnvironment raised KeyError: 'x' (test_guarded.py, line ")


@pytest.mark.parametrize(
    ("came", "says"),
    [
        (None, "returned None: expected Transition"),
        (Transition(observation=None), "returned neither an observation nor an end"),
        (Transition(observation=Observation(text=5)), "Expected `str`, got `int` - at `$.observation.text`"),  # type: ignore[arg-type]
        (Transition(observation=Observation(text="\ud800")), "surrogates not allowed"),
        (Transition(observation=Observation(text=""), info={"number": 5}), "Expected `str`, got `int` - at `$.info[...]`"),  # type: ignore[dict-item]
    ],
)
async def test_a_step_that_gives_no_transition_is_a_failure_that_says_so(came: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def step(*_: object) -> Any:
        return came

    monkeypatch.setattr(ToyEnvironment, "step", step)
    async with guarded_factory(ToyFactory(chain()), print).open(simulation=True) as environment:
        await environment.reset(toy_task(chain()))
        with pytest.raises(EnvironmentFailure) as failure:
            await environment.step(environment.actions.action("go", "on"))
    assert str(failure.value).startswith("environment.step: ") and says in str(failure.value)


async def test_rewards_pass_and_odd_ones_are_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    async with guarded_factory(ToyFactory(chain()), print).open(simulation=True) as environment:
        await environment.reset(toy_task(chain()))
        assert reward_of(environment) == 0.0
        monkeypatch.setattr(ToyEnvironment, "reward", lambda self: None)
        with pytest.raises(EnvironmentFailure, match=r"environment\.reward: ToyEnvironment raised TypeError"):
            reward_of(environment)
