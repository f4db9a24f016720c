"""Private temporary folders that live as long as this process: checkpoints, downloads, working folders of guests.

Each has mode 0700, because checkpoints hold the memory of processes, typed passwords included. A folder is removed when it is closed, and
after a crash by the user's next process that opens one beside it. The owner holds a lock on a file in it, which tells live owners from dead
ones even if process ids are reused.

Child processes.

Locks on files, by which processes of one machine tell a live owner from a dead one. The system releases them when a process ends.
"""

from __future__ import annotations

import asyncio
import errno
import json
import os
import shutil
import signal
import stat
import sys
import tempfile
import time
from asyncio.subprocess import Process, SubprocessStreamProtocol
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from exact.errors import EnvironmentFailure

_YOUNG = 60.0
"""Seconds in which a folder without a lock may still be getting one."""
_LOCK = "owner.json"
_WITH = "with-"
"""Beginning of the names of files in a folder that name one beside it, which is removed with it."""
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
"""Flag by which a symbolic link is not opened; 0 on Windows, which lacks it."""


class ScratchFolder:
    """A folder that only this process uses."""

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        """Create the folder, after removing the folders that dead owners left in `parent` (by default the folder for temporary files).

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


def remove_with(folder: Path, other: Path) -> None:
    """Have a folder that another program made removed with the one of `scratch`, also if this process is killed.

    Only a folder that lies beside the scratch folder and belongs to this user is removed.
    """
    (folder.parent / f"{_WITH}{other.name}").write_bytes(os.fsencode(other))


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
            if path.name.startswith(_WITH):
                _remove_beside(folder, Path(os.fsdecode(path.read_bytes())))
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != _LOCK:
                path.unlink()
        if all(path.name == _LOCK for path in folder.iterdir()):
            shutil.rmtree(folder)


def _remove_beside(folder: Path, other: Path) -> None:
    """Remove a folder if it lies beside another one and is this user's."""
    with suppress(OSError, ValueError):  # the name is that of no path: it was being written
        found = other.lstat()
        if other.parent == folder.parent and other.name != ".." and stat.S_ISDIR(found.st_mode) and is_own(found):
            shutil.rmtree(other, ignore_errors=True)


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


def kill(process: int) -> None:
    """End a process at once. Raises ProcessLookupError if there is none."""
    os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))  # on Windows every signal ends a process at once


def kill_group(leader: int) -> None:
    """End a process group at once; on systems without groups, its leader. Raises ProcessLookupError if there is none."""
    if hasattr(os, "killpg"):
        os.killpg(leader, signal.SIGKILL)
    else:
        kill(leader)


class Child(Process):
    """A process whose exit is reported whatever happens to its pipes.

    In older Pythons, asyncio reports the exit only once the pipes are at their end too. A full pipe that is never read does not get there,
    and neither does a pipe that a grandchild still holds.
    """

    _protocol: _Protocol
    _transport: asyncio.SubprocessTransport

    @classmethod
    async def start(cls, program: str | Path, *arguments: str, limit: int = 1 << 16, **options: Any) -> Child:
        """Start a program. Raises OSError.

        limit: bytes read ahead of each pipe. options: as in `asyncio.create_subprocess_exec`.
        """
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(lambda: _Protocol(limit, loop), program, *arguments, **options)
        return cls(transport, protocol, loop)

    async def wait(self) -> int:
        """Wait for the process to exit. Return its exit status."""
        await self._protocol.exited.wait()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal. Raises ProcessLookupError if the process has ended.

        Popen's own way would reap an ended process first, and asyncio, which waits for it, would report the exit status 255.
        """
        if self.returncode is not None:
            raise ProcessLookupError
        os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end. Raises ProcessLookupError if it has ended."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once. Raises ProcessLookupError if it has ended."""
        self.send_signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    async def end(self) -> None:
        """Kill the process if it runs, and close its pipes; its own children are left. Never raises; may be called twice."""
        with suppress(ProcessLookupError):
            self.kill()
        await self.wait()
        self._transport.close()
        await asyncio.sleep(0)  # transports close their pipes in the loop's next turn


class _Protocol(SubprocessStreamProtocol):
    """Subprocess protocol that reports the exit apart from the pipes."""

    def __init__(self, limit: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit, loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


def try_lock(descriptor: int, *, without: bool = True) -> bool:
    """Lock an open file without waiting. Return False if another process, or another descriptor, holds the lock.

    without: result if the system has no such locks, so that nothing keeps two processes apart. Raises OSError.
    """
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return without


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file, after waiting for the holder of the lock. Raises OSError."""
    from filelock import lock_descriptor

    try:
        lock_descriptor(descriptor)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise


def guard(path: Path) -> Path:
    """Return the file to lock for a file that others read: the file itself, and on Windows one beside it.

    On Windows no process can read a locked file.
    """
    return path if sys.platform != "win32" else path.with_name(f"{path.name}.lock")


def own_id() -> str:
    """Return the text that tells this user's folders from those of others: the user id, or on systems without one the login name."""
    if hasattr(os, "geteuid"):
        return str(os.geteuid())
    return "".join(letter for letter in os.environ.get("USERNAME", "user") if letter.isalnum()) or "user"


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user. Systems without user ids do not say: the folder's permissions decide there."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
