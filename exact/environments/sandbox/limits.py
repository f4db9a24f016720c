"""The limit of a sandbox's memory, which is watched from outside: runsc is started without control groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_POLL = 0.25
"""Seconds between two looks."""


async def watch_memory(pid: int, limit: int, exceeded: Callable[[int], None]) -> None:
    """Call `exceeded` with the bytes in use once a sandbox takes more than `limit` bytes. `pid`: the process that was started.

    Ends with the sandbox.
    """
    while (used := await asyncio.to_thread(memory_of, pid)) is not None:
        if used > limit:
            exceeded(used)
            return
        await asyncio.sleep(_POLL)


def memory_of(pid: int) -> int | None:
    """Return the bytes of memory of a process and its descendants, shared files in memory counted once; None where it has ended."""
    if not Path(f"/proc/{pid}/stat").exists():
        return None
    private, files = 0, dict[tuple[int, int], int]()
    for each in _tree(pid):
        with suppress(OSError, ValueError, IndexError):
            private += _anonymous(each)
            files |= _memory_files(each)
    return private + sum(files.values())


def _tree(pid: int) -> Iterator[int]:
    waiting = [pid]
    while waiting:
        yield (here := waiting.pop())
        with suppress(OSError):
            for task in Path(f"/proc/{here}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def _anonymous(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    return 0


def _memory_files(pid: int) -> dict[tuple[int, int], int]:
    """Return the bytes of the deleted files in memory that a process holds, by device and inode: the memory of the guest is one."""
    found = dict[tuple[int, int], int]()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            if str(entry.readlink()).startswith("/memfd:"):
                status = entry.stat()
                found[status.st_dev, status.st_ino] = status.st_blocks * 512
    return found
