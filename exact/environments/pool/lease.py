"""Entries of a pool, and the leased environments that users of the pool get."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.parts import name_of
from exact.task import Outcome, Score, Task


@dataclass(eq=False)
class PoolEntry:
    """One open environment of a pool."""

    stack: AsyncExitStack
    environment: Environment
    simulation: bool
    fork: bool = False
    """Whether it was made from a snapshot. A fork is leased once only."""
    uses: int = 0
    """Number of leases so far, the present one included."""
    warm: bool = False
    """Whether it was idle before the present lease and has not been called since. It may have died while idle."""
    broken: bool = False
    """Whether its state is unknown, so that it is not leased again."""


Replace = Callable[[PoolEntry], Awaitable[None]]
"""Replaces the environment of a broken entry. Raises EnvironmentFailure."""


class LeasedEnvironment:
    """An environment for the time of a lease. If it broke, `reset` replaces it and every other call raises."""

    def __init__(self, entry: PoolEntry, replace: Replace) -> None:
        self._entry, self._replace = entry, replace
        self._ended = False

    @property
    def __name__(self) -> str:
        """Name of the environment's class, for errors."""
        return name_of(self._entry.environment)

    @property
    def capabilities(self) -> Capabilities:
        return self._environment.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._environment.actions

    async def reset(self, task: Task) -> Observation:
        """Reset the environment. One that broke while idle, or in this lease, is replaced first."""
        warm, self._entry.warm = self._entry.warm, False
        if self._entry.broken:
            await self._replace(self._entry)
        elif warm:
            try:
                return await self._reset(task)
            except EnvironmentFailure:
                await self._replace(self._entry)
        return await self._reset(task)

    async def step(self, action: Action) -> Transition:
        async with self._guarded():
            return await self._environment.step(action)

    async def snapshot(self) -> Snapshot:
        """Take a snapshot. A refusal (EnvironmentFailure) leaves the environment as it was."""
        async with self._guarded(refusal=EnvironmentFailure):
            return await self._environment.snapshot()

    async def restore(self, snapshot: Snapshot) -> Observation:
        async with self._guarded():
            return await self._environment.restore(snapshot)

    async def evaluate(self, outcome: Outcome) -> Score:
        async with self._guarded():
            return await self._environment.evaluate(outcome)

    async def close(self) -> None:
        """Close the environment at the end of the lease instead of leasing it again."""
        self._entry.broken = True

    def end(self) -> None:
        """End the lease: later calls raise EnvironmentFailure."""
        self._ended = True

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the environment, such as `obstacle`, `observation` or `page`."""
        return getattr(self._environment, name)

    @property
    def _environment(self) -> Environment:
        if self._ended:
            raise EnvironmentFailure("the lease of this environment is over: open another one")
        return self._entry.environment

    async def _reset(self, task: Task) -> Observation:
        async with self._guarded():
            return await self._environment.reset(task)

    @asynccontextmanager
    async def _guarded(self, refusal: type[Exception] = ActionError) -> AsyncIterator[None]:
        """Mark the entry as broken if a call fails or is cancelled, except by `refusal`."""
        try:
            yield
        except refusal:
            raise
        except BaseException:
            self._entry.broken = True
            raise
