"""Private folders for what is needed only while this process lives: images of environments, downloads, what guests leave in theirs.

The mode of each is 0700: images hold the memory of processes, typed passwords too. It is removed when it is closed, and after a crash
by the next process of this user that opens one beside it. While its owner lives, it holds a lock on a file in it: that tells the living
from the dead whatever became of process numbers.
"""

from __future__ import annotations

import fcntl
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

_YOUNG = 60.0
"""Seconds in which a folder without a lock may still be getting one."""
_LOCK = "owner.json"


class ScratchFolder:
    """A folder that is ours alone."""

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        """Sweeps first what dead owners left in `parent`, by default the folder for temporary files. `kind` is a word for its name.

        Raises EnvironmentFailure where nothing can be written.
        """
        parent = parent or Path(tempfile.gettempdir())
        sweep(parent)
        try:
            self.path = Path(tempfile.mkdtemp(prefix=f"exact-{kind}-{os.geteuid()}-", dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(self._lock, json.dumps({"pid": os.getpid(), "started": started(os.getpid())}).encode())
        except OSError as error:
            raise EnvironmentFailure(
                f"no room for temporary files in {parent}: {error.strerror}: make some, or name another folder in TMPDIR"
            ) from error
        self._owner = os.getpid()

    def folder(self, *names: str) -> Path:
        """A folder in it, made if it is not there."""
        path = self.path.joinpath(*names)
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    def close(self) -> None:
        """Remove it. May be called twice; a forked copy of this process does nothing."""
        if self._lock >= 0 and os.getpid() == self._owner:
            _remove(self.path)
            os.close(self._lock)
        self._lock = -1


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """An empty folder inside a room of its own, for as long as the block runs. Raises EnvironmentFailure."""
    room = ScratchFolder(kind)
    try:
        yield room.folder("files")
    finally:
        room.close()


def sweep(parent: Path) -> list[Path]:
    """Remove the folders of this user in `parent` whose owner is dead; those that were removed."""
    left = [folder for folder in parent.glob(f"exact-*-{os.geteuid()}-*") if _is_left(folder)]
    for folder in left:
        _remove(folder)
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


def _remove(folder: Path) -> None:
    """The lock goes last: where something cannot be removed yet, the folder is still known for ours at the next start."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _LOCK:
                path.unlink()
        if all(path.name == _LOCK for path in folder.iterdir()):
            shutil.rmtree(folder)


def _is_left(folder: Path) -> bool:
    with suppress(OSError):
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            return False
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:  # an empty one of ours, or something else, which is not ours to remove
            return time.time() - found.st_mtime > _YOUNG and not any(folder.iterdir())
        try:
            if not os.fstat(lock).st_size and time.time() - found.st_mtime <= _YOUNG:
                return False  # its owner is about to lock it, and would fail if this did
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(lock)
        return True
    return False
