"""Environments over toy worlds: real contracts, no browser, faults on demand.

worlds = ToyWorlds(chain(3))
async with worlds.open(speculative=True) as world:
    observation = await world.reset(toy_task("chain"))
    transition = await world.step(world.actions.parse('go "on"'))
    async with worlds.fork(await world.snapshot(), speculative=True) as other:
        ...
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

from exact.environments.base import Snapshot
from exact.environments.toy.chance import bernoulli_bandit
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.decision_environment import decision_world
from exact.environments.toy.environment import TOY_ACTIONS, Counts, Faults, Kept, Operation, Setting, ToyEnvironment
from exact.environments.toy.known import (
    WORLDS,
    ToyEdge,
    ToyState,
    ToyWorld,
    bandit,
    chain,
    deceptive_chain,
    doors,
    form,
    ice,
    maze,
    toy_task,
    toy_world,
    trapped_maze,
)
from exact.errors import EnvironmentError_

__all__ = [
    "TOY_ACTIONS",
    "WORLDS",
    "Counts",
    "DecisionTree",
    "Faults",
    "Operation",
    "ToyEdge",
    "ToyEnvironment",
    "ToyState",
    "ToyWorld",
    "ToyWorlds",
    "bandit",
    "bernoulli_bandit",
    "chain",
    "deceptive_chain",
    "decision_world",
    "doors",
    "form",
    "ice",
    "maze",
    "toy_task",
    "toy_world",
    "trapped_maze",
]


class ToyWorlds:
    """Opens environments of one toy world, and branches of their snapshots; `counts` tells what they did."""

    def __init__(
        self,
        world: ToyWorld,
        *,
        fidelity: Literal["world", "replay"] = "world",
        sealed: bool | None = None,
        faults: Faults | None = None,
        latency: Callable[[], Awaitable[None]] | None = None,
        wait: Callable[[Operation], Awaitable[None]] | None = None,
    ) -> None:
        """`sealed`: None for as the world says. `latency` is awaited in each step and `wait` in each operation, before its effect;
        nothing waits without them."""
        seals = world.sealed if sealed is None else sealed
        self._setting = Setting(world=world, fidelity=fidelity, sealed=seals, faults=faults or Faults(), latency=latency, wait=wait)
        self.world, self.counts = world, self._setting.counts

    @contextlib.asynccontextmanager
    async def open(self, *, speculative: bool) -> AsyncIterator[ToyEnvironment]:
        """A fresh environment, closed on leaving. In a speculative one of a world that is not sealed, writes are blocked."""
        async with self._around(speculative, None) as environment:
            yield environment

    @contextlib.asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, speculative: bool) -> AsyncIterator[ToyEnvironment]:
        """Another environment that stands at a snapshot, whichever environment of these worlds took it, closed or broken since or not.

        It has no snapshots yet. Raises EnvironmentError_ if the snapshot is gone.
        """
        if snapshot.id not in self._setting.kept:
            raise EnvironmentError_(f"snapshot {snapshot.id!r} is not of these worlds, or was dropped: return by another route")
        kept = self._setting.kept[snapshot.id]
        self.counts.forks += 1
        await self._setting.pause("fork")
        async with self._around(speculative, kept) as environment:
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Whether it can still be forked."""
        return snapshot.id in self._setting.kept

    def drop(self, snapshot: Snapshot) -> None:
        """Nobody will come back to it."""
        self._setting.kept.pop(snapshot.id, None)

    @contextlib.asynccontextmanager
    async def _around(self, speculative: bool, at: Kept | None) -> AsyncIterator[ToyEnvironment]:
        self.counts.opened += 1
        self.counts.most_live = max(self.counts.most_live, self.counts.live)
        environment = ToyEnvironment(self._setting, speculative=speculative, at=at)
        try:
            yield environment
        finally:
            await environment.close()
