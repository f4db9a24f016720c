"""An environment of a pool, and the environment that whoever leases it sees."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.task import Outcome, Score, Task


@dataclass(eq=False)
class PoolEntry:
    """One open environment."""

    stack: AsyncExitStack
    environment: Environment
    simulation: bool
    branch: bool = False
    """Made of a snapshot: nobody else can use it."""
    uses: int = 0
    """Leases so far, the present one included."""
    warm: bool = False
    """Whether the present lease got it from among the idle, where it may have died, and nothing was asked of it since."""
    broken: bool = False
    """Nobody knows what state it is in."""


Replace = Callable[[PoolEntry], Awaitable[None]]
"""Puts another environment into a slot whose own is broken. Raises EnvironmentFailure."""


class LeasedEnvironment:
    """An environment for as long as it is leased. Of an environment that broke, `reset` makes another one; everything else raises."""

    def __init__(self, slot: PoolEntry, replace: Replace) -> None:
        self._slot, self._replace = slot, replace
        self._over = False

    @property
    def capabilities(self) -> Capabilities:
        return self._here.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._here.actions

    async def reset(self, task: Task) -> Observation:
        """As of the environment. One that broke while it was idle, or in this lease, is replaced first."""
        warm, self._slot.warm = self._slot.warm, False
        if self._slot.broken:
            await self._replace(self._slot)
        elif warm:
            try:
                return await self._reset(task)
            except EnvironmentFailure:
                await self._replace(self._slot)
        return await self._reset(task)

    async def step(self, action: Action) -> Transition:
        async with self._watched():
            return await self._here.step(action)

    async def snapshot(self) -> Snapshot:
        """A refusal leaves the environment as it was."""
        async with self._watched(refusal=EnvironmentFailure):
            return await self._here.snapshot()

    async def restore(self, snapshot: Snapshot) -> Observation:
        async with self._watched():
            return await self._here.restore(snapshot)

    async def evaluate(self, outcome: Outcome) -> Score:
        async with self._watched():
            return await self._here.evaluate(outcome)

    async def close(self) -> None:
        """The environment is let go at the lease's end, and not leased again."""
        self._slot.broken = True

    def end(self) -> None:
        """The lease is over: whoever still holds this holds nothing."""
        self._over = True

    def __getattr__(self, name: str) -> object:
        """What else the environment offers: `obstacle`, `observation`, `page`, ..."""
        return getattr(self._here, name)

    @property
    def _here(self) -> Environment:
        if self._over:
            raise EnvironmentFailure("the lease of this environment is over: open another one")
        return self._slot.environment

    async def _reset(self, task: Task) -> Observation:
        async with self._watched():
            return await self._here.reset(task)

    @asynccontextmanager
    async def _watched(self, refusal: type[Exception] = ActionError) -> AsyncIterator[None]:
        """An environment in which a call failed, or was cancelled in the middle, is not used again."""
        try:
            yield
        except refusal:
            raise
        except BaseException:
            self._slot.broken = True
            raise
