"""Limits of a pool, and measurements of its environments' resources."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

_PROC = Path("/proc")
PAUSE = 1.0
"""Least seconds between two measurements."""


class PoolLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a pool. None: no limit. One environment is always admitted, however much it uses."""

    environments: int = 4
    """Environments that may be open at once, leased or idle."""
    memory: int | None = None
    """Bytes of all their processes, one more environment of mean size included."""
    processes: int | None = None
    """Number of their processes, those of one more environment of mean size included."""
    processors: float | None = None
    """Mean number of busy CPU cores above which no further lease begins."""
    spares: int = 0
    """Idle environments that are kept open, so that the next lease does not wait."""
    uses: int = 50
    """Number of leases after which an environment is closed."""


@dataclass
class PoolCounts:
    """Counters of a pool."""

    leases: int = 0
    """Leases begun."""
    opened: int = 0
    """Environments opened."""
    reused: int = 0
    """Leases of an environment that was idle."""
    recycled: int = 0
    """Environments closed after their number of uses."""
    broken: int = 0
    """Environments closed or replaced because they broke."""
    most: int = 0
    """Largest number of environments open at once."""


class ResourceUsage(NamedTuple):
    """Resources used by processes at one moment."""

    memory: int = 0
    """Bytes of proportional set size, in which shared memory counts once."""
    processes: int = 0
    """Number of processes."""
    processor: float = 0.0
    """CPU seconds used so far, by ended processes too."""


class Capacity:
    """Decides by measurements whether another environment, or another lease, is admitted."""

    def __init__(self, limits: PoolLimits, gauge: Callable[[], ResourceUsage], clock: Callable[[], float], *, pause: float = PAUSE) -> None:
        self._limits, self._gauge, self._clock, self.pause = limits, gauge, clock, pause
        self._used, self._at = ResourceUsage(), -1.0
        self._busy = 0.0
        """CPU cores busy between the last two measurements, on average."""

    def fits(self, environments: int) -> bool:
        """Return whether memory and processes admit another environment beside so many."""
        limits = self._limits
        if not environments or (limits.memory is None and limits.processes is None):
            return True
        used, share = self._measured(), (environments + 1) / environments
        large = limits.memory is not None and used.memory * share > limits.memory
        many = limits.processes is not None and used.processes * share > limits.processes
        return not (large or many)

    def has_cpu(self) -> bool:
        """Return whether the number of busy CPU cores is within its limit."""
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
    """Measure all descendants of this process, without itself. Zeros if this system does not report them."""
    memory, processes, ticks = 0, 0, 0
    for id in _descendants(proc, os.getpid()):
        try:
            fields = (proc / str(id) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        processes, ticks, memory = processes + 1, ticks + sum(map(int, fields[11:15])), memory + _memory(proc / str(id))
    return ResourceUsage(memory, processes, ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0)


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
        pass  # another user's, or ended: its resident size is public
    try:
        return int((process / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0
