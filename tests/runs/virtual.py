"""Runs in virtual time: whenever nobody can go on, the clock jumps to when the next one can."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from exact.agents.agent import Agent
from exact.config import Config
from exact.environments.toy.agents import NoisyJudge, NoisyPolicy
from exact.environments.toy.environment import Operation
from exact.environments.toy.factory import DecisionPolicy, DecisionTree, DecisionValue, ToyFactory, decision_graph
from exact.runs import runner as runner_module
from exact.runs.journal.file import Journal
from exact.runs.runner import Runner
from tests.runs.toys import toy_runner

SANDBOX = {"reset": 1.0, "step": 1.0, "snapshot": 0.5, "restore": 0.5, "fork": 0.5}
"""Seconds of an environment with a slow server in a sandbox."""
TREE = DecisionTree(4, 6, seed=1, rate=0.02)


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing that is a matter of time only."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(timeout if timeout is None else 0)
        if not found and timeout:
            self.now += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of its own time, from 0."""

    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def in_virtual_time(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in virtual time, and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(coroutine)


class Thinking:
    """A part of an agent that takes so many seconds for each answer."""

    def __init__(self, part: Any, seconds: float) -> None:
        self._part, self._seconds = part, seconds

    async def propose(self, *args: Any) -> Any:
        await asyncio.sleep(self._seconds)
        return await self._part.propose(*args)

    async def evaluate(self, *args: Any) -> Any:
        await asyncio.sleep(self._seconds)
        return await self._part.evaluate(*args)


def slow_environments(seconds: Mapping[str, float] = SANDBOX, *, kind: type[ToyFactory] = ToyFactory, **more: Any) -> ToyFactory:
    """Environments of a decision tree whose operations take their time."""

    async def wait(operation: Operation) -> None:
        await asyncio.sleep(seconds.get(operation, 0.0))

    return kind(decision_graph(TREE), wait=wait, **more)


def slow_runner(
    monkeypatch: pytest.MonkeyPatch, folder: Path, environments: ToyFactory, settings: Config, *, thinks: float = 2.0
) -> Runner:
    """Return a runner on such environments with an agent that takes that long."""
    monkeypatch.setattr(runner_module, "Journal", partial(Journal, clock=lambda: asyncio.get_running_loop().time()))
    agent = Agent(
        policy=Thinking(DecisionPolicy(NoisyPolicy(TREE, sd=0.3)), thinks), value=Thinking(DecisionValue(NoisyJudge(TREE, sd=0.2)), thinks)
    )
    return replace(toy_runner(folder, environments, settings), build_agent=lambda config, models: agent)
