"""What people tell a running search, by a file beside its journal.

Whoever watches appends a line to `commands.jsonl`; the process that searches reads it before it asks for more work, and while it waits.
A command counts once it stands in the journal: from there a resumed attempt takes it, and one that stands there is never taken again.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from exact.errors import JournalError

Name = Literal["pause", "resume", "stop", "expand", "prune"]
"""pause: begin nothing new and commit nothing. resume: go on. stop: search no more and commit the best way as far as it was searched.
expand: work on a state next. prune: look no further below a state, and do not commit the action that leads there."""


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line."""

    id: str
    """No two commands share it."""
    name: Name
    node: int = -1
    """For expand and prune: the state."""
    by: str = ""
    """Who gave it, in a few words."""


_decoder = msgspec.json.Decoder(Command)


def mailbox(journal: Path) -> Path:
    """Where commands for a journal's attempt are written."""
    return journal.with_name("commands.jsonl")


def send(journal: Path, name: Name, *, node: int = -1, by: str = "") -> Command:
    """Tell the attempt that writes a journal. Any process may, at any time. Raises JournalError where it cannot be written."""
    command = Command(id=uuid.uuid4().hex, name=name, node=node, by=by[:80])
    path = mailbox(journal)
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(file, msgspec.json.encode(command) + b"\n")
        finally:
            os.close(file)
    except OSError as error:
        raise JournalError(f"cannot write {path}: {error.strerror}") from error
    return command


def lift(journal: Path) -> None:
    """Let an attempt that was paused go on."""
    said = [command.name for command in Mailbox(mailbox(journal)).new() if command.name in ("pause", "resume", "stop")]
    if said and said[-1] == "pause":
        send(journal, "resume", by="exact resume")


class Mailbox:
    """Reads commands as they come, each once."""

    def __init__(self, path: Path, known: Collection[str] = ()) -> None:
        """`known`: ids of commands that were taken before."""
        self._path, self._known = path, set(known)
        self._end = 0

    def new(self) -> Iterator[Command]:
        """What was written since the last look. What is no command is passed over: nothing that stands there may end a search."""
        try:
            if self._path.stat().st_size <= self._end:
                return
            with self._path.open("rb") as file:
                file.seek(self._end)
                data = file.read()
        except OSError:
            return  # nobody has written yet
        whole = data.rfind(b"\n") + 1
        self._end += whole
        for line in data[:whole].splitlines():
            try:
                command = _decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
            if command.id not in self._known:
                self._known.add(command.id)
                yield command
