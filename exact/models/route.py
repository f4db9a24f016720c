"""Which of several endpoints is asked: those that are well, by their weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, Protocol, TypeVar

REFUSED, LONGEST, FIRST = 300.0, 60.0, 1.0
"""Seconds that an endpoint is left alone: one that refuses the key or lacks the model; at most and at first one that fails."""


class Served(Protocol):
    """An endpoint as far as it is routed to."""

    @property
    def weight(self) -> float: ...

    async def alive(self) -> bool:
        """Whether it answers a question that costs nothing."""
        ...


P = TypeVar("P", bound=Served)


class Route(Generic[P]):
    """Shares calls out to endpoints. One that failed is left alone for a while, then checked before it is asked again."""

    def __init__(self, places: Sequence[P], clock: Callable[[], float]) -> None:
        self._places, self._clock = places, clock
        self._asked = [0.0] * len(places)
        self._failures = [0] * len(places)
        self._until = [float("-inf")] * len(places)
        self._refused = [False] * len(places)
        self._checking: set[int] = set()

    async def choose(self, avoid: Collection[P] = ()) -> P:
        """The endpoint to ask next, not one of `avoid` if there is another; with none well, the one that is next to be."""
        while True:
            index = self._next(avoid)
            if index is None:
                index = min(range(len(self._places)), key=lambda i: (self._places[i] in avoid, self._until[i]))
            elif self._failures[index] and len(self._places) > 1 and not await self._well(index):
                continue
            self._asked[index] += 1 / self._places[index].weight
            return self._places[index]

    def others(self, avoid: Collection[P]) -> bool:
        """Whether an endpoint beside those may be asked now."""
        return self._next(avoid) is not None

    def mends(self, avoid: Collection[P]) -> bool:
        """Whether an endpoint beside those may be asked later: it rests from a failure that may pass."""
        return any(not refused and place not in avoid for place, refused in zip(self._places, self._refused, strict=True))

    def succeeded(self, place: P) -> None:
        """It answered."""
        index = self._places.index(place)
        self._failures[index], self._refused[index] = 0, False

    def failed(self, place: P, *, for_good: bool, after: float | None = None) -> None:
        """It did not. `for_good`: trying again will not help soon. `after`: the seconds it asked to be left alone."""
        index = self._places.index(place)
        self._failures[index] += 1
        self._refused[index] = for_good
        wait = REFUSED if for_good else after or min(LONGEST, FIRST * 2.0 ** (self._failures[index] - 1))
        self._until[index] = max(self._until[index], self._clock() + wait)

    def _next(self, avoid: Collection[P]) -> int | None:
        now = self._clock()
        free = [i for i, place in enumerate(self._places) if i not in self._checking and place not in avoid]
        well = [i for i in free if self._until[i] <= now]
        return min(well, key=lambda i: self._asked[i], default=None)

    async def _well(self, index: int) -> bool:
        """Checks one that failed before; it joins with as many calls as the least asked, so that it is not flooded."""
        self._checking.add(index)
        try:
            well = await self._places[index].alive()
        finally:
            self._checking.discard(index)
        if well:
            self._failures[index], self._refused[index] = 0, False
            self._asked[index] = max(self._asked[index], min(a for i, a in enumerate(self._asked) if i != index))
        else:
            self.failed(self._places[index], for_good=False)
        return well
