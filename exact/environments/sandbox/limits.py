"""The limit of a sandbox's memory, which is monitored from outside: runsc is started without control groups."""

# These functions read hundreds of links for each sandbox, and pathlib takes several times as long.
# ruff: noqa: PTH110, PTH115, PTH116, PTH123, PTH208
from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

_SHORTEST, _LONGEST = 0.25, 2.0
"""Seconds between two looks, near the limit and far from it."""
_GROWTH = 1 << 30
"""Bytes a second that a guest may add before the next measurement, which waits as long as the rest of the limit lasts at this rate."""
_SEARCH = 8
"""Measurements after which processes and files are searched again. Between two searches only the known ones are read, which takes a
tenth."""


async def watch_memory(pid: int, limit: int, exceeded: Callable[[int], None]) -> None:
    """Call `exceeded` with the bytes in use once a sandbox takes more than `limit` bytes. `pid`: the process that was started.

    Ends with the sandbox.
    """
    gauge = MemoryGauge(pid)
    while (used := await asyncio.to_thread(gauge.read)) is not None:
        if used > limit:
            exceeded(used)
            return
        await asyncio.sleep(seconds_to_next_look(used, limit))


def seconds_to_next_look(used: int, limit: int) -> float:
    """Return the pause before the next measurement of memory, in [0.25, 2] s: the less is left, the shorter."""
    return min(_LONGEST, max(_SHORTEST, (limit - used) / _GROWTH))


class MemoryGauge:
    """Measures the memory of a process and its descendants, shared files in memory counted once."""

    def __init__(self, pid: int) -> None:
        self._pid, self._looks = pid, 0
        self._processes, self._files = list[int](), list[str]()
        """Processes of the tree, and paths of open files in memory, as of the last search."""

    def read(self) -> int | None:
        """Return the bytes in use; None if the process has ended."""
        if not os.path.exists(f"/proc/{self._pid}/stat"):
            return None
        if self._looks % _SEARCH == 0:
            self._processes = list(_tree(self._pid))
            self._files = [path for each in self._processes for path in _memory_files(each)]
        self._looks += 1
        shared = dict[tuple[int, int], int]()
        for path in self._files:
            with suppress(OSError):
                status = os.stat(path)
                shared[status.st_dev, status.st_ino] = status.st_blocks * 512
        return sum(map(_anonymous, self._processes)) + sum(shared.values())


def _tree(pid: int) -> Iterator[int]:
    """Yield a process and its descendants."""
    waiting = [pid]
    while waiting:
        yield (here := waiting.pop())
        with suppress(OSError):
            for task in os.listdir(f"/proc/{here}/task"):
                waiting += map(int, _text(f"/proc/{here}/task/{task}/children").split())


def _anonymous(pid: int) -> int:
    """Return the bytes of a process's own memory; 0 if it has ended."""
    with suppress(OSError, ValueError, IndexError):
        for line in _text(f"/proc/{pid}/status").splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) << 10
    return 0


def _memory_files(pid: int) -> Iterator[str]:
    """Yield the paths of the deleted files in memory that a process holds: the memory of the guest is one."""
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(path := f"/proc/{pid}/fd/{name}").startswith("/memfd:"):
                    yield path


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
