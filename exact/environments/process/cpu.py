"""CPU time of a process and its descendants, as the kernel reports it."""

from __future__ import annotations

import os
from pathlib import Path

_PROC = Path("/proc")


def processor_seconds(pid: int, proc: Path = _PROC) -> float:
    """Return user and system seconds of a process and its descendants, ended ones included; 0 where this system does not report them."""
    ticks, waiting = 0, [pid]
    while waiting:
        here = proc / str(waiting.pop())
        try:
            fields = (here / "stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
            for task in (here / "task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile
    return ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0
