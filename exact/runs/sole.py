"""One process runs a run at a time, and no two processes take the same new folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from exact.errors import JournalError, UsageError
from exact.locks import guard, try_lock

_LOCKED = "config.yaml"
"""File of a run that never changes."""


@contextmanager
def sole(run: Path) -> Iterator[None]:
    """Hold a run folder for this process while the block runs. Raises UsageError where another process runs it, JournalError."""
    try:
        path = guard(run / _LOCKED)
        lock = path.open("rb" if path.exists() else "ab")
    except OSError as error:
        raise JournalError(f"cannot write {run}: {error.strerror}: choose another output folder") from error
    with lock:
        if not try_lock(lock.fileno()):
            raise UsageError(f"{run} is being run by another process: wait for it or end it, or watch it with `exact view {run}`")
        yield


def new_folder(parent: Path, name: str) -> Path:
    """Create and return the first free folder `name-1`, `name-2`, ... in `parent`, which no other process gets. Raises JournalError."""
    number = 1
    while True:
        path = parent / f"{name}-{number}"
        try:
            parent.mkdir(parents=True, exist_ok=True)
            path.mkdir()
        except FileExistsError:
            number += 1
        except OSError as error:
            raise JournalError(f"cannot write {parent}: {error.strerror}: change to another folder, or choose --out") from error
        else:
            return path
