"""Rate limits that several processes use together, so that all of them stay within what a provider allows one key."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from exact.errors import UsageError
from exact.locks import wait_for_lock
from exact.models.rate_limiter import BURST, Rate

Limits = tuple[float | None, float | None]
"""Requests and tokens a minute; None: no limit."""


class SharedRates(Protocol):
    """Counts what all processes use of an endpoint."""

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Count requests and tokens as used, and return the seconds to wait before they may be used.

        Negative amounts are given back. `blocked`: seconds for which the endpoint asked this process to wait, which then all processes do.
        """
        ...


class RateTable:
    """What was used of each endpoint, and until when it is blocked. The times are those of the caller's clock."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[float, float, float]] = {}
        """For each endpoint the times from which the next request and token may be used, and until which it is blocked."""

    def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float, *, now: float) -> float:
        """Count an amount at a time, as `SharedRates.take` does."""
        row = self.rows.get(endpoint, (now - BURST, now - BURST, now))
        rates = [Rate(limit, next) for limit, next in zip(limits, row, strict=False)]
        waits = [rate.take(amount, now) for rate, amount in zip(rates, (requests, tokens), strict=True)]
        until = max(row[2], now + blocked)
        self.rows[endpoint] = rates[0].next, rates[1].next, until
        return max(*waits, until - now)


class RateFile:
    """SharedRates in a file of this machine, which is locked for each request."""

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._path, self._clock = path, clock

    async def take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        """Implement SharedRates. Raises UsageError where the file cannot be written or holds something else."""
        return await asyncio.to_thread(self._take, endpoint, limits, requests, tokens, blocked)

    def _take(self, endpoint: str, limits: Limits, requests: float, tokens: float, blocked: float) -> float:
        table = RateTable()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a+") as file:
                wait_for_lock(file.fileno())
                file.seek(0)
                table.rows = {name: (row[0], row[1], row[2]) for name, row in json.loads(file.read() or "{}").items()}
                wait = table.take(endpoint, limits, requests, tokens, blocked, now=self._clock())
                file.seek(0)
                file.truncate()
                file.write(json.dumps(table.rows))
        except OSError as error:
            raise UsageError(f"models.shared_limits: cannot write {self._path}: {error.strerror}: name another file") from error
        except (ValueError, AttributeError, TypeError, IndexError) as error:
            raise UsageError(f"models.shared_limits: {self._path} holds something else: name another file") from error
        return wait


_used: SharedRates | None = None
"""What this process counts by."""


def use_shared_rates(rates: SharedRates | None) -> None:
    """Count requests of this process by these rates from now on; None: each process by itself."""
    global _used
    _used = rates


def shared_rates(path: str) -> SharedRates | None:
    """Return the rates to count by: those of `use_shared_rates`, or of a file; None where there is neither."""
    return _used or (RateFile(Path(path)) if path else None)
