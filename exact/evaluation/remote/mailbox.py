"""What all processes of a benchmark reach: a mailbox for what attempts write, and a counter of used rates. Actors on the head node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from exact.evaluation.remote.delivery import DeliveryItem
from exact.models.shared_rates import Limits, RateTable

ROOM = 64
"""Batches that wait at most. A sender waits for room, so that a slow disk slows attempts and does not fill the memory."""
LONGEST = 10.0
"""Seconds after which a receiver that got nothing asks again."""


class AttemptMailbox:
    """The program of an actor. Batches of one sender stay in their order."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[tuple[int, Sequence[DeliveryItem]]] = asyncio.Queue(ROOM)

    async def put(self, attempt: int, items: Sequence[DeliveryItem]) -> None:
        """Add a batch of the items of one attempt, once there is room."""
        await self._waiting.put((attempt, items))

    async def take(self) -> list[tuple[int, Sequence[DeliveryItem]]]:
        """Return the batches that have come, after waiting for the first; none where nothing comes for LONGEST seconds."""
        try:
            async with asyncio.timeout(LONGEST):
                found = [await self._waiting.get()]
        except TimeoutError:
            return []
        while not self._waiting.empty():
            found.append(self._waiting.get_nowait())
        return found


class RateCounter:
    """The program of an actor that counts what all processes use of each endpoint, by its own clock."""

    def __init__(self) -> None:
        self._table = RateTable()

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Count an amount, as `SharedRates.take` does."""
        return self._table.take(endpoint, limits, requests, tokens, blocked, now=time.monotonic())


class RayRates:
    """SharedRates that ask the actor."""

    def __init__(self, counter: Any) -> None:
        self._counter = counter

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Implement SharedRates."""
        wait: float = await self._counter.take.remote(endpoint, limits, requests, tokens, blocked)
        return wait
