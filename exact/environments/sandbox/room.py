"""A private folder for the state of sandboxes and their images, which hold the memory of processes, typed passwords too.

Its mode is 0700. It is removed at exit, and after a crash by the next process of this user that opens one. While its owner lives, it
holds a lock on a file in it: that tells the living from the dead whatever became of process numbers.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from exact.errors import EnvironmentError_

ENOUGH = 1 << 30
"""Bytes free on /dev/shm from which it is used; else the disk."""
_YOUNG = 60.0
"""Seconds in which a folder without a lock may still be getting one."""
_LOCK = "owner.json"


class Room:
    """A folder that is ours alone."""

    def __init__(self, parent: Path | None = None) -> None:
        """Sweeps what dead owners left in `parent`, by default /dev/shm where that is large enough.

        Raises EnvironmentError_ where nothing can be written.
        """
        parent = parent or place()
        sweep(parent)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=_prefix(), dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._lock, json.dumps({"pid": os.getpid(), "started": started(os.getpid())}).encode())
        except OSError as error:
            raise EnvironmentError_(f"no room for the images of worlds in {parent}: {error.strerror}") from error
        self._owner = os.getpid()

    def folder(self, *names: str) -> Path:
        """A folder in it, made if it is not there."""
        path = self.path.joinpath(*names)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def close(self) -> None:
        """Remove it. May be called twice; a forked copy of this process does nothing."""
        if self._lock >= 0 and os.getpid() == self._owner:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._lock)
        self._lock = -1


def place() -> Path:
    """/dev/shm where it is large enough, else the folder for temporary files."""
    shm = Path("/dev/shm")
    with suppress(OSError):
        if os.access(shm, os.W_OK) and shutil.disk_usage(shm).free >= ENOUGH:
            return shm
    return Path(tempfile.gettempdir())


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of this user in `parent` whose owner is dead; those that were removed."""
    left = [folder for folder in parent.glob(f"{_prefix()}*") if _is_left(folder)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    return left


def owner(folder: Path) -> dict[str, Any]:
    """Process number and start, in clock ticks since the machine started, of the process a folder belongs to."""
    found: dict[str, Any] = json.loads((folder / _LOCK).read_bytes())
    return found


def started(pid: int) -> int:
    """When a process started, in clock ticks since the machine did; 0 where there is no such process."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return 0


def _prefix() -> str:
    return f"exact-worlds-{os.geteuid()}-"


def _is_left(folder: Path) -> bool:
    with suppress(OSError):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return time.time() - found.st_mtime > _YOUNG
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True
    return False
