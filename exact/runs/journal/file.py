"""The file of a journal: append-only, one event as JSON on each line."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from exact.errors import JournalError
from exact.machine import guard, try_lock
from exact.runs.folder_check import MOST_LINE
from exact.runs.journal.aliases import RENAMED, current
from exact.runs.journal.events import OLDEST, SCHEMA, AnyEvent, Opened, Reset
from exact.runs.journal.store import lines_of, scrubbed
from exact.secrecy.scrubber import NOTHING, Scrubber

Clock = Callable[[], float]
E = TypeVar("E", bound=AnyEvent)

_FACTS = {
    "opened", "reset", "arrived", "acted", "rolled_step", "called", "unaccounted", "recalled", "late", "commanded", "decided", "committed",
    "ended", "scored", "reflected", "finished",
}  # fmt: skip
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(AnyEvent)


def is_being_written(path: Path) -> bool:
    """Return True while a process has a journal open for writing."""
    try:
        with guard(path).open("rb") as file:
            return not try_lock(file.fileno())
    except OSError:
        return False


_HEAD = 20
"""Lines of a journal among which the reset is."""


class Journal:
    """Writes events. One process at a time may have a journal open: the file is locked."""

    def __init__(self, path: Path, *, clock: Clock = time.time, scrubber: Scrubber = NOTHING) -> None:
        """Open a journal for writing. `scrubber` removes secrets from events before they are written. Raises JournalError."""
        self.path, self.clock, self._scrubber = path, clock, scrubber
        self._listeners: list[Callable[[AnyEvent], None]] = []
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a+b", buffering=0)
            self._guard = self._file if guard(path) == path else guard(path).open("a+b", buffering=0)
            free = try_lock(self._guard.fileno())
        except OSError as error:
            raise JournalError(f"cannot write {path}: {error.strerror}: choose another output folder") from error
        if not free:
            self.close()
            raise JournalError(f"{path} is being written by another process: wait for it, or end it")
        self._drop_torn_line()
        self._start: float | None = None

    def listen(self, listener: Callable[[AnyEvent], None]) -> None:
        """Call a listener with every event written from now on."""
        self._listeners.append(listener)

    def since(self, start: float) -> None:
        """Count `t` from a reading of the clock."""
        self._start = start

    @property
    def now(self) -> float:
        """Seconds since the journal was first opened, to the microsecond."""
        if self._start is None:
            self._start = self.clock()
        return round(self.clock() - self._start, 6)

    def write(self, event: E) -> E:
        """Append one event and return it with its time and without secrets. A fact is on disk when this returns. Raises JournalError."""
        stamped = scrubbed(msgspec.structs.replace(event, t=self.now), self._scrubber)
        line = _encoder.encode(stamped) + b"\n"
        if len(line) > MOST_LINE:
            raise JournalError(f"an event has {len(line):,} bytes, more than are read again: {type(event).__struct_config__.tag}")
        try:
            written = self._file.write(line)
            if written != len(line):
                raise OSError(28, "No space left on device")
            if type(event).__struct_config__.tag in _FACTS:
                os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise JournalError(f"cannot write {self.path}: {error.strerror}: free some space, then `exact resume`") from error
        self._end += len(line)
        for listener in self._listeners:
            listener(stamped)
        return stamped

    def append(self, lines: bytes) -> None:
        """Append whole lines that another process has made. They are on disk when this returns. Raises JournalError."""
        try:
            if self._file.write(lines) != len(lines):
                raise OSError(28, "No space left on device")
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise JournalError(f"cannot write {self.path}: {error.strerror}: free some space, then `exact resume`") from error
        self._end += len(lines)

    def close(self) -> None:
        """Flush and unlock the file. May be called twice."""
        self._file.close()
        self._guard.close()

    def _drop_torn_line(self) -> None:
        """Cut off what follows the last newline, which a crash left of a write."""
        data = self.path.read_bytes()
        self._end = data.rfind(b"\n") + 1
        self._file.truncate(self._end)


def events_of(lines: bytes) -> Iterator[AnyEvent]:
    """Yield the events in whole lines of this version, which another process has made. Raises JournalError for anything else."""
    *whole, rest = lines.split(b"\n")
    if rest:
        raise JournalError("a line without an end")
    for line in whole:
        try:
            event = _decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise JournalError(f"a line does not read: {error}") from error
        if isinstance(event, Opened) and event.schema != SCHEMA:
            raise JournalError(f"schema {event.schema}, here {SCHEMA}")
        yield event


class Tail:
    """Reads a journal as it grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = False
        """Whether the part read last ended within a line."""
        self._end = self._lines = 0
        self._has_old_names = False
        """Whether the journal was begun under old names: see aliases.py."""

    def new(self) -> Iterator[AnyEvent]:
        """Yield the events written since the last call, without a torn last line. Raises JournalError where another line is invalid."""
        self.torn = False
        for line in lines_of(self.path, self._end):
            if not line.endswith(b"\n"):
                self.torn = True
                return
            self._end, self._lines = self._end + len(line), self._lines + 1
            try:
                event = _decoder.decode(current(line) if self._has_old_names else line)
                if isinstance(event, Opened) and event.schema < RENAMED:
                    self._has_old_names, event = True, _decoder.decode(current(line))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise JournalError(f"{self.path}:{self._lines} does not read: {error}; the lines before it are valid") from error
            if isinstance(event, Opened):
                _check_schema(self.path, event)
            yield event


def read_journal(path: Path) -> Iterator[AnyEvent]:
    """Yield the events of a journal, without a torn last line. Raises JournalError where another line is invalid."""
    return Tail(path).new()


def stated_instruction(path: Path) -> str:
    """Return the instruction with which an attempt began, as its environment stated it; empty where the journal holds none.

    Only the first lines are read. A journal that does not read has none.
    """
    try:
        with path.open("rb") as file:
            for line in itertools.islice(file, _HEAD):
                if line.startswith(b'{"event":"reset"') and line.endswith(b"\n"):
                    return msgspec.json.decode(line, type=Reset).instruction
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return ""


def _check_schema(path: Path, opened: Opened) -> None:
    """Raise JournalError for a journal of a schema that this version does not read."""
    if opened.schema > SCHEMA:
        raise JournalError(f"{path} was written by a newer exact (schema {opened.schema}, here {SCHEMA}): upgrade to read it")
    if opened.schema < OLDEST:
        by = opened.versions.get("exact", "an older version")
        raise JournalError(
            f"{path} was written by an older exact (schema {opened.schema}, here {SCHEMA}): read it with exact {by}, or start a new run"
        )
