"""Who writes a folder on storage: a file in it, renewed while a process writes."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from exact.errors import JournalError, UsageError

OWNER = "writer.json"
STALE = 60.0
"""Seconds without a renewal after which a writer counts as gone."""


class _Entry(msgspec.Struct, frozen=True):
    token: str
    place: str
    """Machine and folder of the writer's local copy."""
    process: int
    renewed: float
    """Seconds since the epoch, by the writer's clock."""
    ended: bool = False


class Owner:
    """The claim of this process to write a folder."""

    def __init__(self, get: Callable[[str], bytes | None], put: Callable[[str, bytes | None], None], url: str, *, place: str) -> None:
        """Read who wrote the folder last. Raises JournalError where the storage does not answer."""
        self._get, self._put, self._url, self._place = get, put, url, place
        self._last, self._token = self._read(), secrets.token_hex(8)

    @property
    def last(self) -> str:
        """Token of the last writer; empty where there was none."""
        return self._last.token if self._last else ""

    def take(self) -> str:
        """Become the writer and return the token. Raises UsageError where a process elsewhere is one, JournalError.

        Two processes of one place are kept apart by a lock there.
        """
        last = self._last
        if last and not last.ended and last.place != self._place and (age := time.time() - last.renewed) < STALE:
            raise UsageError(
                f"{self._url} is being written by process {last.process} of {last.place.partition(':')[0]}: end it, and try again in "
                f"{STALE - age:.0f} s"
            )
        self._write()
        return self._token

    def renew(self) -> None:
        """Say that this process still writes. Raises JournalError, also where another process became the writer."""
        found = self._read()
        if found is not None and found.token != self._token:
            raise JournalError(f"{self._url} was taken over by process {found.process} of {found.place.partition(':')[0]}")
        self._write()

    def release(self) -> None:
        """Say that this process has ended. Raises JournalError."""
        self._write(ended=True)

    def _read(self) -> _Entry | None:
        data = self._get(OWNER)
        try:
            return None if data is None else msgspec.json.decode(data, type=_Entry)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None

    def _write(self, *, ended: bool = False) -> None:
        entry = _Entry(self._token, self._place, os.getpid(), time.time(), ended)
        self._put(OWNER, msgspec.json.encode(entry))


def is_written_elsewhere(copy: Path) -> bool:
    """Return whether a process writes the folder on storage that this is a copy of, by the clock of this machine."""
    try:
        entry = msgspec.json.decode((copy / OWNER).read_bytes(), type=_Entry)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return not entry.ended and time.time() - entry.renewed < STALE
