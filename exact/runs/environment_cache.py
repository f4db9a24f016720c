"""Environments that are opened once, used by many tasks, and opened anew when they broke."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from exact.environments.base import EnvironmentFactory
from exact.errors import EnvironmentFailure
from exact.task import Task


class EnvironmentCache:
    """Keeps the environments of the last key (a suite's name, say) open between tasks. An async context manager."""

    def __init__(self, key: Callable[[Task], str], open: Callable[[Task], AbstractAsyncContextManager[EnvironmentFactory]]) -> None:
        self._key, self._open = key, open
        self._stack = AsyncExitStack()
        self._held: tuple[str, EnvironmentFactory] | None = None

    async def __aenter__(self) -> EnvironmentCache:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._close()

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[EnvironmentFactory]:
        """The environments for one task; closed if they break in it."""
        if self._held is None or self._held[0] != self._key(task):
            await self._close()
            self._held = self._key(task), await self._stack.enter_async_context(self._open(task))
        try:
            yield self._held[1]
        except EnvironmentFailure:
            await self._close()
            raise

    async def _close(self) -> None:
        self._held = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
