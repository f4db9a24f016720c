"""Worlds that tell how each episode ended, for an oracle.

The benchmark's verdict is not on an agent's path: `evaluate` is called once, after the committed actions. An oracle is the exception,
marked wherever its results stand. It is made of these worlds, which ask for the verdict wherever an episode ends, in search too, and
write it into a table; of `agents.value.oracle.OracleValue`, which looks there; and of nothing else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, Snapshot, Transition, Worlds
from exact.observation import Observation
from exact.task import Outcome, Score, Task

Verdicts = dict[tuple[str, ...], float]
"""Scores in [0, 1] of episodes that ended, by task id and the canonical texts of their actions."""


class TellingWorlds:
    """Opens environments that write each ended episode's score into `verdicts`."""

    def __init__(self, inner: Worlds, verdicts: Verdicts) -> None:
        self._inner, self._verdicts = inner, verdicts

    @asynccontextmanager
    async def open(self, *, speculative: bool) -> AsyncIterator[Environment]:
        """A fresh environment of the inner worlds."""
        async with self._inner.open(speculative=speculative) as environment:
            yield Telling(environment, self._verdicts)


class Telling:
    """One environment that tells."""

    def __init__(self, inner: Environment, verdicts: Verdicts) -> None:
        self._inner, self._verdicts = inner, verdicts
        self._path: tuple[str, ...] = ()
        self._taken: dict[str, tuple[str, ...]] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    async def reset(self, task: Task) -> Observation:
        self._path = (task.id,)
        return await self._inner.reset(task)

    async def step(self, action: Action) -> Transition:
        """The inner step; where it ends the episode, its verdict."""
        transition = await self._inner.step(action)
        self._path += (action.key,)
        if transition.terminated:
            answer = " ".join(map(str, action.args)) if action.name == "stop" else None
            score = await self._inner.evaluate(Outcome(actions=self._path[1:], answer=answer))
            self._verdicts[self._path] = score.value
        return transition

    async def snapshot(self) -> Snapshot:
        snapshot = await self._inner.snapshot()
        self._taken[snapshot.id] = self._path
        return snapshot

    async def restore(self, snapshot: Snapshot) -> Observation:
        observation = await self._inner.restore(snapshot)
        self._path = self._taken[snapshot.id]
        return observation

    async def evaluate(self, outcome: Outcome) -> Score:
        return await self._inner.evaluate(outcome)

    async def close(self) -> None:
        await self._inner.close()
