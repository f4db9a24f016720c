"""Choice among several endpoints of one model: the healthy ones, by their weights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, Protocol, TypeVar

REFUSED, LONGEST, FIRST = 300.0, 60.0, 1.0
"""Backoff of an endpoint in seconds: one that refuses the key or lacks the model; the longest and the first of one that fails."""


class BalancedEndpoint(Protocol):
    """An endpoint as far as the load balancer needs it."""

    @property
    def weight(self) -> float:
        """Share of the calls beside the other endpoints'."""
        ...

    async def alive(self) -> bool:
        """Return whether the endpoint answers a health check, which costs nothing."""
        ...


E = TypeVar("E", bound=BalancedEndpoint)


class LoadBalancer(Generic[E]):
    """Shares calls among endpoints by weight. One that failed backs off, and is checked before it is asked again."""

    def __init__(self, endpoints: Sequence[E], clock: Callable[[], float]) -> None:
        """Start with all endpoints healthy. `clock` gives seconds."""
        self._endpoints, self._clock = endpoints, clock
        self._asked = [0.0] * len(endpoints)
        self._failures = [0] * len(endpoints)
        self._until = [float("-inf")] * len(endpoints)
        self._refused = [False] * len(endpoints)
        self._checking: set[int] = set()

    async def choose(self, avoid: Collection[E] = ()) -> E:
        """Return the endpoint to ask next: one of `avoid` only if no others are left; if none is healthy, the first to recover."""
        while True:
            index = self._next(avoid)
            if index is None:
                index = min(range(len(self._endpoints)), key=lambda i: (self._endpoints[i] in avoid, self._until[i]))
            elif self._failures[index] and len(self._endpoints) > 1 and not await self._healthy(index):
                continue
            self._asked[index] += 1 / self._endpoints[index].weight
            return self._endpoints[index]

    def others(self, avoid: Collection[E]) -> bool:
        """Return whether an endpoint that is not in `avoid` may be asked now."""
        return self._next(avoid) is not None

    def recovers(self, avoid: Collection[E]) -> bool:
        """Return whether an endpoint that is not in `avoid` may be asked later: its failure may pass."""
        return any(not refused and endpoint not in avoid for endpoint, refused in zip(self._endpoints, self._refused, strict=True))

    def succeeded(self, endpoint: E) -> None:
        """Record that an endpoint answered."""
        index = self._endpoints.index(endpoint)
        self._failures[index], self._refused[index] = 0, False

    def failed(self, endpoint: E, *, permanent: bool, after: float | None = None) -> None:
        """Record that an endpoint failed.

        `permanent`: another try will not help soon. `after`: the seconds that the server asked to wait.
        """
        index = self._endpoints.index(endpoint)
        self._failures[index] += 1
        self._refused[index] = permanent
        wait = REFUSED if permanent else after or min(LONGEST, FIRST * 2.0 ** (self._failures[index] - 1))
        self._until[index] = max(self._until[index], self._clock() + wait)

    def _next(self, avoid: Collection[E]) -> int | None:
        now = self._clock()
        free = [i for i, endpoint in enumerate(self._endpoints) if i not in self._checking and endpoint not in avoid]
        healthy = [i for i in free if self._until[i] <= now]
        return min(healthy, key=lambda i: self._asked[i], default=None)

    async def _healthy(self, index: int) -> bool:
        """Check an endpoint that failed before. It rejoins with as many calls as the least asked one, so that it is not flooded."""
        self._checking.add(index)
        try:
            healthy = await self._endpoints[index].alive()
        finally:
            self._checking.discard(index)
        if healthy:
            self._failures[index], self._refused[index] = 0, False
            self._asked[index] = max(self._asked[index], min(a for i, a in enumerate(self._asked) if i != index))
        else:
            self.failed(self._endpoints[index], permanent=False)
        return healthy
