"""Environments shared by concurrent attempts: one pool for each kind, opened at its first use and reopened after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from exact.environments.base import EnvironmentFactory
from exact.environments.pool.capacity import PoolLimits
from exact.environments.pool.pool import Pool
from exact.errors import EnvironmentFailure
from exact.task import Task

KEPT = 4
"""Number of kinds that stay open while unused. A task may bring its own site, which takes memory as long as it runs."""


@dataclass(eq=False)
class _Opened:
    """A pool, and the number of attempts that use it."""

    key: str
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    pool: Pool | None = None
    opening: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    retired: bool = False
    """Whether an environment of it failed. New attempts do not use it, and it closes when the last one leaves."""


class PooledFactory:
    """An async context manager whose `at(task, tree)` gives one attempt its share of a pool.

    Raises EnvironmentFailure where environments cannot be opened.
    """

    def __init__(
        self, key: Callable[[Task], str], open: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]], limits: PoolLimits
    ) -> None:
        """`key` is equal for tasks that share environments. `open` opens the environments of a task. `limits` bounds each pool."""
        self._key, self._open, self._limits = key, open, limits
        self._kinds: dict[str, _Opened] = {}
        self._retired: set[_Opened] = set()
        self._persists: dict[str, bool] = {}

    async def __aenter__(self) -> PooledFactory:
        return self

    async def __aexit__(self, *exc: object) -> None:
        for opened in [*self._kinds.values(), *self._retired]:
            await self._close(opened)
        self._kinds.clear()
        self._retired.clear()

    @asynccontextmanager
    async def at(self, task: Task, tree: str) -> AsyncIterator[EnvironmentFactory]:
        """Yield the environments for one attempt. After an EnvironmentFailure, later attempts get a new pool; running ones keep theirs."""
        key = self._key(task)
        opened = self._kinds.pop(key, None) or _Opened(key)
        self._kinds[key] = opened
        opened.users += 1
        try:
            await self._tidy()
            yield (await self._pool(opened, task)).share(tree)
        except EnvironmentFailure:
            self._retire(opened)
            raise
        finally:
            opened.users -= 1
            if opened.retired and not opened.users:
                self._retired.discard(opened)
                await self._close(opened)

    async def persists(self, task: Task) -> bool:
        """Return whether side effects persist in the environments of a task.

        Each kind is asked once. The next attempt uses the environment that was opened for it. Raises EnvironmentFailure.
        """
        key = self._key(task)
        if key not in self._persists:
            async with self.at(task, "") as environments, environments.open(simulation=False) as environment:
                self._persists[key] = not environment.capabilities.isolated
        return self._persists[key]

    async def _pool(self, opened: _Opened, task: Task) -> Pool:
        async with opened.opening:
            if opened.pool is None:
                environments = await opened.stack.enter_async_context(self._open(task))
                opened.pool = Pool(environments, self._limits)
            return opened.pool

    async def _tidy(self) -> None:
        """Close the unused kinds but the most recently used ones."""
        idle = [each for each in self._kinds.values() if not each.users]
        for each in idle[: max(0, len(self._kinds) - KEPT)]:
            del self._kinds[each.key]
            await self._close(each)

    def _retire(self, opened: _Opened) -> None:
        opened.retired = True
        self._retired.add(opened)
        if self._kinds.get(opened.key) is opened:
            del self._kinds[opened.key]

    async def _close(self, opened: _Opened) -> None:
        """Close a pool without waiting for attempts that hang in it: their environments are closed too."""
        if opened.pool is not None:
            await opened.pool.drain(wait=not opened.users)
        await opened.stack.aclose()
