"""How much a pool may hold, and whether there is room for more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

_PROC = Path("/proc")
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


class ResourceUsage(NamedTuple):
    """At one moment."""

    memory: int = 0
    """Bytes: proportional set size, so that what processes share counts once."""
    processes: int = 0
    processor: float = 0.0
    """Seconds taken so far, by processes that have ended too."""


class Capacity:
    """Measures what all environments use, at most once in a while."""

    def __init__(self, limits: PoolLimits, gauge: Callable[[], ResourceUsage], clock: Callable[[], float], *, pause: float = PAUSE) -> None:
        self._limits, self._gauge, self._clock, self.pause = limits, gauge, clock, pause
        self._used, self._at = ResourceUsage(), -1.0
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

    def _measured(self) -> ResourceUsage:
        now = self._clock()
        if self._at < 0 or now - self._at >= self.pause:
            used = self._gauge()
            if self._at >= 0 and now > self._at:
                self._busy = max(0.0, used.processor - self._used.processor) / (now - self._at)
            self._used, self._at = used, now
        return self._used


def measure_usage(proc: Path = _PROC) -> ResourceUsage:
    """Of all descendants of this process, itself left out. Nothing where this system does not tell."""
    memory, processes, ticks = 0, 0, 0
    for id in _descendants(proc, os.getpid()):
        try:
            fields = (proc / str(id) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        processes, ticks, memory = processes + 1, ticks + sum(map(int, fields[11:15])), memory + _memory(proc / str(id))
    return ResourceUsage(memory, processes, ticks / os.sysconf("SC_CLK_TCK"))


def _descendants(proc: Path, root: int) -> Iterator[int]:
    waiting = [root]
    while waiting:
        id = waiting.pop()
        if id != root:
            yield id
        try:
            for task in (proc / str(id) / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except OSError:
            continue


def _memory(process: Path) -> int:
    try:
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # another user's, or it ended: what is resident is told to all
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
