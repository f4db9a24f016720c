"""The speculative worlds of an attempt: at most one for each worker, opened when first needed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from exact.environments.base import Worlds
from exact.environments.restore import Place, Waypoint
from exact.task import Task


class Places:
    """Lends places, each to one piece of work at a time."""

    def __init__(self, worlds: Worlds, task: Task, size: int) -> None:
        self._all = [Place(worlds, task) for _ in range(size)]
        self._free = list(self._all)
        self._room = asyncio.Semaphore(size)

    @asynccontextmanager
    async def borrow(self, path: Sequence[Waypoint]) -> AsyncIterator[Place]:
        """A free place, waited for: one that stands at the path's end, else one that is open, else a new one."""
        async with self._room:
            place = min(self._free, key=lambda each: (not each.stands_at(path), not each.opened))
            self._free.remove(place)
            try:
                yield place
            finally:
                self._free.append(place)
                self._free.sort(key=self._all.index)

    @property
    def busy(self) -> bool:
        """Whether all are lent."""
        return not self._free

    def standing(self, path: Sequence[Waypoint]) -> bool:
        """Whether a free place stands at the path's end."""
        return any(each.stands_at(path) for each in self._free)

    async def close(self) -> None:
        """Let all worlds go."""
        for place in self._all:
            await place.close()
