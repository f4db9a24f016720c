"""The speculative environments of an attempt: for each worker one, some to spare, and some that stay where they were left; opened when
needed.

A spare one is what the next states are prepared in while a model thinks: see prefetch.py. A worker never waits for one of those.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from exact.environments.base import EnvironmentFactory
from exact.environments.restore import Arrival, Costs, Slot, SnapshotStore, Waypoint
from exact.task import Task

WORTHWHILE = 0.05
"""Seconds from which on a way is worth a spare environment."""


class Places:
    """Lends places, each to one piece of work at a time."""

    def __init__(
        self, environments: EnvironmentFactory, task: Task, size: int, *, spare: int = 0, more: int = 0, clock: Callable[[], float]
    ) -> None:
        """`size`: workers that use them. `more`: environments that may stay where they were left. `clock`: seconds, to measure routes
        by."""
        self.shelf = SnapshotStore(environments)
        self._spare, more = (spare, more) if self.shelf.forks is not None else (0, 0)
        self._cores = os.cpu_count() or 1
        self.costs = Costs(workers=size)
        self._all = [Slot(environments, task, store=self.shelf, costs=self.costs, clock=clock) for _ in range(size + self._spare + more)]
        self._free = list(self._all)
        """The longest unused first."""
        self._room = asyncio.Semaphore(size)
        self._coming: dict[tuple[Waypoint, ...], asyncio.Event] = {}
        self._prepared: dict[Slot, tuple[Waypoint, ...]] = {}

    @asynccontextmanager
    async def borrow(self, path: Sequence[Waypoint]) -> AsyncIterator[Slot]:
        """A free place, waited for: the one from which the path's end is reached at the least cost.

        Of equal ones, one that is not open yet: what others stand at may be come back to.
        """
        async with self._room:
            if (coming := self._coming.get(tuple(path))) is not None:
                await coming.wait()
            place = min(self._free, key=lambda each: (_nearness(each, path), each.opened))
            self._free.remove(place)
            try:
                yield place
            finally:
                self._free.append(place)

    @asynccontextmanager
    async def spare(self, path: Sequence[Waypoint], wanted: Sequence[Sequence[Waypoint]]) -> AsyncIterator[Slot | None]:
        """A free place to prepare a state in; None where there is none to spare.

        `wanted`: states that are likely needed, this one among them, the likeliest first: a place that stands at a likelier one stays.
        Of equally near ones, one that is not open yet: what others stand at may be come back to.
        """
        end, places = tuple(path), {tuple(each): rank for rank, each in reversed(list(enumerate(wanted)))}
        ranks = {place: place.rank(places) for place in self._free}
        free = [place for place in self._free if ranks[place] > places[end]]
        if len(self._coming) >= self._spare or end in self._coming or self.standing(path) or not free:
            yield None
            return
        place = min(free, key=lambda each: (-ranks[each], _nearness(each, path), each.opened))
        self._free.remove(place)
        self._coming[end] = asyncio.Event()
        try:
            yield place
        finally:
            self._free.insert(0, place)
            self._coming.pop(end).set()

    @property
    def spares(self) -> int:
        """How many may be brought to states in the background at once."""
        return self._spare

    def may_prepare(self, path: Sequence[Waypoint], *, since: int) -> bool:
        """Whether an environment can be brought to the path's end, and none is there or on its way. `since`: as in Place.arrive.

        Not while as many environments are moved as there are cores: whoever needs one now would wait longer.
        """
        if tuple(path) in self._coming or not self._free or len(self._all) - len(self._free) >= self._cores:
            return False
        near = min(_nearness(each, path) for each in self._free)
        return near >= WORTHWHILE and bool(self._free[0].routes(path, since=since))

    def pays(self, path: Sequence[Waypoint], returns: float) -> bool:
        """Whether a snapshot of the path's end, of an environment that stands there but is not lent, saves more than it costs.

        `returns`: how often an environment is expected to be sent there.
        """
        if self.shelf.has(tuple(path)) or not self._free or self.standing(path):
            return False
        return self.costs.pays(returns, min(each.routes(path)[0].seconds for each in self._free))

    def prepared(self, place: Slot, arrival: Arrival, path: Sequence[Waypoint]) -> None:
        """A place was brought to a state before anybody asked."""
        if arrival.arrived:
            self._prepared[place] = tuple(path)

    def was_prepared(self, place: Slot, path: Sequence[Waypoint]) -> bool:
        """Whether it was brought there before anybody asked; true once."""
        return self._prepared.pop(place, None) == tuple(path)

    @property
    def open(self) -> int:
        """How many environments are open now."""
        return sum(place.opened for place in self._all)

    @property
    def busy(self) -> bool:
        """Whether all that workers may have are lent."""
        return self._room.locked()

    def standing(self, path: Sequence[Waypoint]) -> bool:
        """Whether a free place stands at the path's end."""
        return any(each.is_at(path) for each in self._free)

    def go_on(self, root: Sequence[Waypoint], *, wrote: bool) -> None:
        """The search goes on from a state. `wrote`: a write led there, which only whole environments took along."""
        self.shelf.retain_below(root)
        if wrote:
            self.shelf.written.add(tuple(root))
            self.shelf.drop_outdated()

    async def close(self) -> None:
        """Let all environments go, and what was kept of them."""
        for place in self._all:
            await place.close()
        self.shelf.clear()


def _nearness(place: Slot, path: Sequence[Waypoint]) -> float:
    """Expected seconds to a state, in hundredths: less is noise."""
    return round(place.routes(path)[0].seconds, 2)
