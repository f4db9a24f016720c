"""Private temporary folders that live as long as this process: checkpoints, downloads, working folders of guests.

Each has mode 0700, because checkpoints hold the memory of processes, typed passwords included. A folder is removed when it is closed, and
after a crash by the user's next process that opens one beside it. The owner holds a lock on a file in it, which tells live owners from dead
ones even if process ids are reused.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exact.errors import EnvironmentFailure
from exact.locks import is_own, own_id, try_lock

_YOUNG = 60.0
"""Seconds in which a folder without a lock may still be getting one."""
_LOCK = "owner.json"
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Flag by which a symbolic link is not opened; 0 on Windows, which has none."""


class ScratchFolder:
    """A folder that only this process uses."""

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        """Create the folder, after removing what dead owners left in `parent` (by default the folder for temporary files).

        kind: a word for its name. Raises EnvironmentFailure if nothing can be written.
        """
        parent = parent or Path(tempfile.gettempdir())
        sweep(parent)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"exact-{kind}-{own_id()}-", dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            try_lock(self._lock)
            os.write(self._lock, json.dumps({"pid": os.getpid(), "started": process_start(os.getpid())}).encode())
        except OSError as error:
            raise EnvironmentFailure(
                f"cannot create a temporary folder in {parent}: {error.strerror}: free some space, or set TMPDIR to another folder"
            ) from error
        self._owner = os.getpid()

    def folder(self, *names: str) -> Path:
        """Return a folder inside, created if it does not exist."""
        path = self.path.joinpath(*names)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def close(self) -> None:
        """Remove the folder. May be called twice; a forked copy of this process does nothing."""
        if self._lock >= 0 and os.getpid() == self._owner:
            _remove(self.path)
            os.close(self._lock)
        self._lock = -1


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """Provide an empty folder for the duration of the block. Raises EnvironmentFailure."""
    folder = ScratchFolder(kind)
    try:
        yield folder.folder("files")
    finally:
        folder.close()


def sweep(parent: Path) -> list[Path]:
    """Remove this user's folders in `parent` whose owner is dead. Return the removed ones."""
    left = [folder for folder in parent.glob(f"exact-*-{own_id()}-*") if _is_stale(folder)]
    for folder in left:
        _remove(folder)
    return left


def folder_owner(folder: Path) -> dict[str, Any]:
    """Return the process id (`pid`) and the start time (`started`, in clock ticks since boot) of a folder's owner."""
    found: dict[str, Any] = json.loads((folder / _LOCK).read_bytes())
    return found


def process_start(pid: int) -> int:
    """Return the start time of a process in clock ticks since boot; 0 if there is no such process."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return 0


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last, so that a folder that cannot be removed yet is recognised at the next start."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _LOCK:
                path.unlink()
        if all(path.name == _LOCK for path in folder.iterdir()):
            shutil.rmtree(folder)


def _is_stale(folder: Path) -> bool:
    """Return whether a folder is this user's and its owner is dead."""
    with suppress(OSError):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or not is_own(found):
            return False
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | _NO_LINKS)
        except FileNotFoundError:  # an empty folder of ours; anything else is not ours to remove
            return time.time() - found.st_mtime > _YOUNG and not any(folder.iterdir())
        try:
            if not os.fstat(lock).st_size and time.time() - found.st_mtime <= _YOUNG:
                return False  # its owner is about to lock it, and would fail if this process did
            return try_lock(lock, without=False)
        finally:
            os.close(lock)
    return False
