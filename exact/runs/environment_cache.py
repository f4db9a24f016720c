"""Environments that are opened once, used by many tasks, and reopened after a failure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from exact.environments.base import EnvironmentFactory
from exact.errors import EnvironmentFailure
from exact.task import Task


class EnvironmentCache:
    """A cache of the environments of the last key, such as a suite's name, between tasks. An async context manager."""

    def __init__(self, key: Callable[[Task], str], open: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]]) -> None:
        self._key, self._open = key, open
        self._stack = AsyncExitStack()
        self._cached: tuple[str, EnvironmentFactory] | None = None

    async def __aenter__(self) -> EnvironmentCache:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._close()

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[EnvironmentFactory]:
        """Lend the environments for one task. They are closed where they fail in it. Raises EnvironmentFailure."""
        if self._cached is None or self._cached[0] != self._key(task):
            await self._close()
            self._cached = self._key(task), await self._stack.enter_async_context(self._open(task))
        try:
            yield self._cached[1]
        except EnvironmentFailure:
            await self._close()
            raise

    async def _close(self) -> None:
        self._cached = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
