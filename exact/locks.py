"""Locks on files, by which processes of one machine tell a live owner from a dead one. The system releases them when a process ends."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path


def try_lock(descriptor: int, *, without: bool = True) -> bool:
    """Lock an open file without waiting. Return False where another process, or another descriptor, holds the lock.

    without: result where the system has no such locks, and nothing keeps two processes apart. Raises OSError.
    """
    from filelock import lock_descriptor

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return without


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file, after waiting for whoever holds the lock. Raises OSError."""
    from filelock import lock_descriptor

    try:
        lock_descriptor(descriptor)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise


def guard(path: Path) -> Path:
    """Return the file to lock for a file that others read: the file itself, and on Windows one beside it.

    Windows lets nobody read what is locked.
    """
    return path if sys.platform != "win32" else path.with_name(f"{path.name}.lock")


def own_id() -> str:
    """Return what tells this user's folders from those of others: the user id, or on systems without one the login name."""
    if hasattr(os, "geteuid"):
        return str(os.geteuid())
    return "".join(letter for letter in os.environ.get("USERNAME", "user") if letter.isalnum()) or "user"


def is_own(status: os.stat_result) -> bool:
    """Return whether a file belongs to this user. Systems without user ids do not say: the folder's permissions decide there."""
    return not hasattr(os, "geteuid") or status.st_uid == os.geteuid()
