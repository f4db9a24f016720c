"""One process at a time writes a run, a benchmark or a training, and no two processes take the same new folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from pathlib import Path

from exact.errors import JournalError, UsageError
from exact.machine import guard, try_lock
from exact.task import Task

_LOCKED = "config.yaml"
"""File of a run that never changes."""
LOCK = "process.lock"
"""Empty file of a benchmark or a training, whose other files are replaced."""


@contextmanager
def sole(run: Path, name: str = _LOCKED) -> Iterator[None]:
    """Hold a folder for this process while the block runs. Raises UsageError if another process holds it, JournalError.

    name: the file to lock: of a run its configuration, else `LOCK`. The system unlocks it when this process ends, however that ends.
    """
    try:
        run.mkdir(parents=True, exist_ok=True)
        path = guard(run / name)
        lock = path.open("rb" if path.exists() else "ab")
    except OSError as error:
        raise JournalError(f"cannot write {run}: {error.strerror}: choose another output folder") from error
    with lock:
        if not try_lock(lock.fileno()):
            watch = f", or watch it with `exact view {run}`" if name == _LOCKED else ""
            raise UsageError(f"{run} is being run by another process: wait for it or end it{watch}")
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


def site_lease(task: Task) -> AbstractAsyncContextManager[None]:
    """Return the lease of the task's site, if it has one outside. The code of sites is loaded for such a task alone."""
    if "outside" not in task.metadata:
        return nullcontext()
    from exact.environments.sites.lease import leased_site

    return leased_site(task)
