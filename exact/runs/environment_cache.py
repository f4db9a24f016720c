"""Worlds that are opened once, used by many tasks, and opened anew when they broke."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from exact.environments.base import Worlds
from exact.errors import EnvironmentError_
from exact.task import Task


class SharedWorlds:
    """Keeps the worlds of the last key (a suite's name, say) open between tasks. An async context manager."""

    def __init__(self, key: Callable[[Task], str], open: Callable[[Task], AbstractAsyncContextManager[Worlds]]) -> None:
        self._key, self._open = key, open
        self._stack = AsyncExitStack()
        self._held: tuple[str, Worlds] | None = None

    async def __aenter__(self) -> SharedWorlds:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._close()

    @asynccontextmanager
    async def __call__(self, task: Task) -> AsyncIterator[Worlds]:
        """The worlds for one task; closed if they break in it."""
        if self._held is None or self._held[0] != self._key(task):
            await self._close()
            self._held = self._key(task), await self._stack.enter_async_context(self._open(task))
        try:
            yield self._held[1]
        except EnvironmentError_:
            await self._close()
            raise

    async def _close(self) -> None:
        self._held = None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()
