"""Actors on the head node that all processes of a benchmark reach: a mailbox for the output of attempts, and a counter of used rates.

Results that other machines send: one that no attempt here could have is a failure of that attempt.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from exact.errors import InfrastructureError
from exact.evaluation.folder import Replay
from exact.evaluation.remote import delivery
from exact.evaluation.remote.delivery import DeliveryItem
from exact.models.rate_limiter import Limits, RateTable
from exact.runs.journal.store import ResultLine
from exact.task import Task

ROOM = 64
"""Batches that wait at most. A sender waits for room, so that a slow disk slows attempts and does not fill the memory."""
LONGEST = 10.0
"""Seconds after which a receiver that got nothing asks again."""
_MOST_AMOUNT, _MOST_BLOCKED, _MOST_ENDPOINTS = 1e8, 86_400.0, 1000
"""Largest amount of a request; seconds of the longest wait that a server is believed; endpoints that are counted."""

Batch = tuple[str, int, Sequence[DeliveryItem]]
"""Token of the attempt, number of the batch among those of its attempt, and items. All three are given by the sender."""


class AttemptMailbox:
    """The program of an actor. Batches of one sender stay in their order."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[Batch] = asyncio.Queue(ROOM)

    async def put(self, token: str, number: int, items: Sequence[DeliveryItem]) -> None:
        """Add a batch of the items of one attempt, once there is room. Raises ValueError if it is too large."""
        if (size := sum(len(part) for item in _listed(items) for part in _listed(item) if isinstance(part, bytes | str))) > _most():
            raise ValueError(f"a batch of {size:,} bytes is too large")
        await self._waiting.put((token, number, items))

    async def take(self) -> list[Batch]:
        """Return the batches that have come, after waiting for the first; none if nothing comes for LONGEST seconds."""
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
    """The program of an actor that counts the usage of each endpoint by all processes, on its own clock."""

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


T = TypeVar("T")

_STATUSES = {"scored", "judged", "failed", "stopped", "needs_user"}
_SIGNED = {"seed", "raw"}
"""Numbers of a result that may be negative."""
_MATCHES = {"same", "drifted", "refused", "failed"}


def decoded(data: bytes, type: type[T]) -> T:
    """Return the value of a JSON text. Raises InfrastructureError if it is of another type."""
    try:
        return msgspec.json.decode(data, type=type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InfrastructureError(f"a process of Ray sent a result that does not read: {error}") from error


def checked_line(data: bytes, task: Task) -> ResultLine:
    """Return the result of an attempt at a task. Raises InfrastructureError if it is not one."""
    line = decoded(data, ResultLine)
    counts = [value for name, value in msgspec.structs.asdict(line).items() if name not in _SIGNED and isinstance(value, int | float)]
    if (
        (line.task, line.seed) != (task.id, task.seed)
        or line.status not in _STATUSES
        or not all(0 <= each < math.inf for each in counts)
        or not _is_score(line.score)
        or (line.status == "scored") != (line.score is not None)
    ):
        raise _other(task)
    return line


def checked_replay(data: bytes, task: Task) -> Replay:
    """Return the replay of an attempt at a task. Raises InfrastructureError if it is not one."""
    replay = decoded(data, Replay)
    if replay.task != task.id or replay.match not in _MATCHES or not _is_score(replay.score):
        raise _other(task)
    return replay


def _is_score(score: float | None) -> bool:
    return score is None or 0 <= score <= 1


def _other(task: Task) -> InfrastructureError:
    return InfrastructureError(f"a process of Ray sent something else than a result of {task.id}")
