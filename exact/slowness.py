"""How slowly this machine runs now, and limits of time that are as much longer.

A limit of time says how long a page or a server may take on a machine at rest. On a busy one each of its threads waits for a processor, so
that the same work takes longer. Time is counted as that of a machine at rest here: a second during which more than two threads want each
processor counts as half of one. It counts as no less, because a page that keeps the processors busy itself must not be waited for without
end.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

LOW = 2.0
"""Threads for each processor up to which a machine counts as at rest: a browser that draws a page has as many for a moment."""
MOST = 2.0
"""Factor by which limits grow on a busy machine."""
_MEMORY = 1.0
"""Seconds by which what was measured is averaged: a burst is over sooner."""
_EACH = 0.25
"""Seconds between two measurements while something waits."""
_INSTANT = 0.001
"""Seconds that are not waited for."""
_LOAD = Path("/proc/loadavg")


def threads_for_each_processor() -> float:
    """Return the number of threads that run or want to, apart from this one, over the number of processors; 0 where Linux does not say."""
    try:
        return (int(_LOAD.read_text().split()[3].partition("/")[0]) - 1) / (os.cpu_count() or 1)
    except (OSError, ValueError, IndexError):
        return 0.0


class RestClock:
    """The time of a machine at rest, by measurements of this one."""

    def __init__(
        self, load: Callable[[], float] = threads_for_each_processor, clock: Callable[[], float] = lambda: asyncio.get_running_loop().time()
    ) -> None:
        """Take `load`, which returns the threads for each processor, and `clock`, which returns seconds; by default the event loop's."""
        self._load, self._clock = load, clock
        self._last: float | None = None
        self._time, self._mean = 0.0, 0.0
        self.waited, self.counted = 0.0, 0.0
        """Seconds of this machine and of one at rest that the limits of time have counted so far."""

    @property
    def slowness(self) -> float:
        """Return the factor by which limits grow now: 1 at rest, else `MOST`."""
        return 1.0 if self._mean < LOW else MOST

    def time(self) -> float:
        """Return the seconds that have passed since the beginning, as those of a machine at rest. Measure again if a while has passed."""
        now = self._clock()
        if self._last is None or now < self._last:  # another event loop, whose clock begins elsewhere
            self._last = now
        passed = now - self._last
        if passed >= _EACH / 2:
            self._mean += (self._load() - self._mean) * (1 - math.exp(-passed / _MEMORY))
            self._last, self._time = now, self._time + passed / self.slowness
            return self._time
        return self._time + passed / self.slowness

    def now(self) -> float:
        """Return the seconds of the clock."""
        return self._clock()

    def stretched(self, waited: float = 0.0, counted: float = 0.0) -> float:
        """Return the factor by which limits of time have grown on average, since `waited` and `counted` were as given; 1 without limits."""
        return (self.waited - waited) / (self.counted - counted) if self.counted > counted else 1.0


REST_CLOCK = RestClock()
"""The time of a machine at rest, for this process."""


class Timer:
    """A call after some seconds of a machine at rest."""

    def __init__(self, seconds: float, call: Callable[[], object], clock: RestClock | None = None) -> None:
        """Begin now. The call comes from the running event loop."""
        self._clock, self._call = clock or REST_CLOCK, call
        self._began, self._begun = self._clock.now(), self._clock.time()
        self._at = self._begun + seconds
        self._handle: asyncio.Handle | None = asyncio.get_running_loop().call_soon(self._wait)

    @property
    def left(self) -> float:
        """Return the seconds of a machine at rest until the call; 0 after it."""
        return max(0.0, self._at - self._clock.time())

    def cancel(self) -> None:
        """Do not call."""
        if self._handle is not None:
            self._handle.cancel()
            self._note()

    def _wait(self) -> None:
        if (left := self.left) < _INSTANT:
            self._note()
            self._call()
            return
        self._handle = asyncio.get_running_loop().call_later(min(_EACH, left * self._clock.slowness), self._wait)

    def _note(self) -> None:
        self._handle = None
        self._clock.waited += self._clock.now() - self._began
        self._clock.counted += self._clock.time() - self._begun


class Limit:
    """A limit of time of the block, in seconds of a machine at rest. It raises TimeoutError, as `asyncio.timeout` does."""

    def __init__(self, seconds: float, clock: RestClock | None = None) -> None:
        """Take the seconds, which are counted from the beginning of the block."""
        self._seconds, self._clock = seconds, clock
        self._timeout = asyncio.timeout(None)
        self._timer: Timer | None = None

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self.set(self._seconds)
        return self

    async def __aexit__(self, *raised: Any) -> None:
        self._left = self.left
        self._stop()
        await self._timeout.__aexit__(*raised)

    @property
    def expired(self) -> bool:
        """Return whether the time has run out."""
        return self._timeout.expired()

    @property
    def left(self) -> float:
        """Return the seconds that are left, or were at the end of the block; infinity while there is no limit."""
        return self._timer.left if self._timer is not None else self._left

    def set(self, seconds: float) -> None:
        """Count these seconds from now; infinity for no limit. One that has expired stays so."""
        self._stop()
        self._left = seconds
        if seconds < math.inf and not self.expired:
            self._timer = Timer(seconds, self._end, self._clock)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _end(self) -> None:
        self._timer, self._left = None, 0.0
        self._timeout.reschedule(asyncio.get_running_loop().time())
