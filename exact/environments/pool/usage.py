"""What environments use: memory, processes and processor time of everything that this process has started."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_PROC = Path("/proc")


class Usage(NamedTuple):
    """At one moment."""

    memory: int = 0
    """Bytes: proportional set size, so that what processes share counts once."""
    processes: int = 0
    processor: float = 0.0
    """Seconds taken so far, by processes that have ended too."""


def usage(proc: Path = _PROC) -> Usage:
    """Of all descendants of this process, itself left out. Nothing where this system does not tell."""
    memory, processes, ticks = 0, 0, 0
    for id in _descendants(proc, os.getpid()):
        try:
            fields = (proc / str(id) / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        processes, ticks, memory = processes + 1, ticks + sum(map(int, fields[11:15])), memory + _memory(proc / str(id))
    return Usage(memory, processes, ticks / os.sysconf("SC_CLK_TCK"))


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
