"""Wake-ups for a file that other processes append to: by inotify on Linux, elsewhere by looks at its size."""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL = 0.2
"""Seconds between two looks where the system tells nothing of files."""
_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_READ = 65_536


@contextmanager
def watched(path: Path, changed: Callable[[], None]) -> Iterator[None]:
    """Call `changed` in the running loop soon after each change of a file, which need not exist yet. Its folder must."""
    if (notices := _notices(path)) is None:
        looking = asyncio.ensure_future(_look(path, _size(path), changed))
        try:
            yield
        finally:
            looking.cancel()
        return
    loop = asyncio.get_running_loop()

    def noticed() -> None:
        os.read(notices, _READ)
        _watch_file(notices, path)
        changed()

    loop.add_reader(notices, noticed)
    try:
        yield
    finally:
        loop.remove_reader(notices)
        os.close(notices)


def _notices(path: Path) -> int | None:
    """Return a descriptor that is readable once the file has changed; None where the system or the file system has no such thing."""
    if sys.platform != "linux":
        return None
    file = int(_libc().inotify_init1(_FLAGS))
    if file < 0:
        return None
    if _libc().inotify_add_watch(file, os.fsencode(path.parent), _CREATE | _MOVED_TO) < 0:
        os.close(file)
        return None
    _watch_file(file, path)
    return file


def _watch_file(file: int, path: Path) -> None:
    _libc().inotify_add_watch(file, os.fsencode(path), _MODIFY)  # fails until the file exists; its creation is noticed


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


async def _look(path: Path, known: int, changed: Callable[[], None]) -> None:
    """Call `changed` whenever a file's size differs from the one before. `known`: its size in bytes when the watch began."""
    while True:
        await asyncio.sleep(POLL)
        if (now := _size(path)) != known:
            known = now
            changed()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
