"""What closed environments leave behind: processes, memory, descriptors."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from exact.environments.check.base import Broken, Skip, Subject

SLACK, MEMORY = 8 * 2**20, 64 * 1024
"""Bytes that may be held more after a quarter of the cycles, once and for each cycle, because allocators and caches settle.

The check compares the minimum of each quarter, since servers keep connections open for a moment. Growth must occur twice: a heap that is
enlarged grows once (a JavaScript driver's by 27 MiB after about a hundred environments), and a process that ends late looks like growth.
"""

_PROC = Path("/proc")

LEAST = 4
"""Minimum number of environments opened and closed, however little time there is."""

LOOKS = 8
"""Measurements in each quarter but the first."""


class Held(dict[str, float]):
    """Resources of this process and its descendants: `processes`, `descriptors`, `bytes`."""


async def nothing_is_left(subject: Subject) -> str:
    """Check that environments that are opened, used and closed leave no process, memory or descriptor behind."""
    if not _counts():
        raise Skip("this system has no /proc, by which processes and memory are counted")
    await _use(subject)
    cycles = max(LEAST, int(min(subject.cycles, subject.seconds / max(subject.now() - subject.began, 1e-9))))
    quarter = max(1, cycles // 4)
    stride, begin = max(1, quarter // LOOKS), cycles - 3 * quarter
    looks: list[list[Held]] = [[], [], []]
    for cycle in range(cycles):
        if cycle:
            await _use(subject)
        part, place = divmod(cycle - begin, quarter)
        if part >= 0 and (quarter - 1 - place) % stride == 0:
            looks[part].append(held())
    for what, most in (("processes", 0.0), ("descriptors", 0.0), ("bytes", SLACK + MEMORY * quarter)):
        first, second, third = (min(look[what] for look in part) for part in looks)
        if min(second - first, third - second) > most:
            raise Broken(f"{third - first:.0f} {what} more after {2 * quarter} cycles: something is not closed")
    return f"{cycles} cycles"


def _counts() -> bool:
    """Return whether this system tells which processes run and what they hold."""
    return _PROC.is_dir()


async def _use(subject: Subject) -> None:
    async with subject.environment() as environment:
        await subject.walk(environment, await subject.reset(environment), 2, "leak")


def held() -> Held:
    """Return the present resources of this process and all its descendants."""
    gc.collect()
    family = _family()
    return Held(
        processes=len(family),
        descriptors=sum(_count(_PROC / str(id) / "fd") for id in family),
        bytes=sum(_resident(id) for id in family),
    )


def _family() -> list[int]:
    """Return the ids of this process and all its living descendants."""
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            except OSError:
                continue
            if state != "Z":
                parents[int(entry.name)] = int(parent)
    found = {os.getpid()}
    while more := {id for id, parent in parents.items() if parent in found and id not in found}:
        found |= more
    return sorted(found)


def _count(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


def _resident(id: int) -> int:
    try:
        return int((_PROC / str(id) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0
