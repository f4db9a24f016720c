"""How much a pool may hold, and whether there is room for more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from exact.environments.pool.usage import Usage

PAUSE = 1.0
"""Seconds between two measurements."""


class PoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pool may hold. None: no bound. One environment is always let, however much it uses."""

    environments: int = 4
    """Open at once, leased or idle."""
    memory: int | None = None
    """Bytes of all their processes, with one more environment as large as the mean of those that are open."""
    processes: int | None = None
    processors: float | None = None
    """How many processors they keep busy in the mean; above it no further lease begins."""
    spares: int = 0
    """Idle ones kept open, so that the next lease need not wait."""
    uses: int = 50
    """Leases after which an environment is closed."""


@dataclass
class PoolCounts:
    """What a pool did."""

    leases: int = 0
    opened: int = 0
    reused: int = 0
    recycled: int = 0
    """Closed after their number of uses."""
    broken: int = 0
    """Closed or replaced because they broke."""
    most: int = 0
    """Open at once."""


class Room:
    """Measures what all environments use, at most once in a while."""

    def __init__(self, limits: PoolLimits, gauge: Callable[[], Usage], clock: Callable[[], float], *, pause: float = PAUSE) -> None:
        self._limits, self._gauge, self._clock, self.pause = limits, gauge, clock, pause
        self._used, self._at = Usage(), -1.0
        self._busy = 0.0
        """Processors kept busy between the last two measurements."""

    def fits(self, environments: int) -> bool:
        """Whether memory and processes admit another environment beside so many."""
        limits = self._limits
        if not environments or (limits.memory is None and limits.processes is None):
            return True
        used, share = self._measured(), (environments + 1) / environments
        large = limits.memory is not None and used.memory * share > limits.memory
        many = limits.processes is not None and used.processes * share > limits.processes
        return not (large or many)

    def rested(self) -> bool:
        """Whether fewer processors are busy than may be."""
        if self._limits.processors is None:
            return True
        self._measured()
        return self._busy <= self._limits.processors

    def _measured(self) -> Usage:
        now = self._clock()
        if self._at < 0 or now - self._at >= self.pause:
            used = self._gauge()
            if self._at >= 0 and now > self._at:
                self._busy = max(0.0, used.processor - self._used.processor) / (now - self._at)
            self._used, self._at = used, now
        return self._used
