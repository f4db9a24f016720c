"""What all processes of a benchmark reach: a mailbox for what attempts write, and a counter of used rates. Actors on the head node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from exact.evaluation.remote import delivery
from exact.evaluation.remote.delivery import DeliveryItem
from exact.models.rate_limiter import Limits, RateTable

ROOM = 64
"""Batches that wait at most. A sender waits for room, so that a slow disk slows attempts and does not fill the memory."""
LONGEST = 10.0
"""Seconds after which a receiver that got nothing asks again."""
_MOST_AMOUNT, _MOST_BLOCKED, _MOST_ENDPOINTS = 1e8, 86_400.0, 1000
"""Largest amount of a request; seconds of the longest wait that a server is believed; endpoints that are counted."""

Batch = tuple[str, int, Sequence[DeliveryItem]]
"""Token of the attempt, number of the batch among those of its attempt, and items. All three are what the sender says."""


class AttemptMailbox:
    """The program of an actor. Batches of one sender stay in their order."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue(ROOM)

    async def put(self, token: str, number: int, items: Sequence[DeliveryItem]) -> None:
        """Add a batch of the items of one attempt, once there is room. Raises ValueError where it is too large."""
        if (size := sum(len(part) for item in _listed(items) for part in _listed(item) if isinstance(part, bytes | str))) > _most():
            raise ValueError(f"a batch of {size:,} bytes is too large")
        await self._waiting.put((token, number, items))

    async def take(self) -> list[Batch]:
        """Return the batches that have come, after waiting for the first; none where nothing comes for LONGEST seconds."""
        try:
            async with asyncio.timeout(LONGEST):
                found = [await self._waiting.get()]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            found.append(self._waiting.get_nowait())
        return found


def _listed(given: object) -> Sequence[object]:
    return given if isinstance(given, list | tuple) else ()


def _most() -> int:
    return delivery.BATCH + delivery.MOST_ITEM


class RateCounter:
    """The program of an actor that counts what all processes use of each endpoint, by its own clock."""

    def __init__(self) -> None:
        self._table = RateTable()

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Count an amount, as `SharedRates.take` does. Raises ValueError for one that no request has."""
        most = _MOST_AMOUNT, _MOST_AMOUNT, _MOST_BLOCKED
        if not all(abs(each) <= bound for each, bound in zip((requests, tokens, blocked), most, strict=True)):
            raise ValueError(f"no amount of a request: {requests}, {tokens}, blocked for {blocked} s")
        if endpoint not in self._table.rows and len(self._table.rows) >= _MOST_ENDPOINTS:
            raise ValueError(f"more than {_MOST_ENDPOINTS} endpoints are counted")
        return self._table.take(endpoint, limits, requests, tokens, blocked, now=time.monotonic())


class RayRates:
    """SharedRates that ask the actor."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Implement SharedRates."""
        wait: float = await self._counter.take.remote(endpoint, limits, requests, tokens, blocked)
        return wait
