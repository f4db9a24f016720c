"""Viewers' commands to a running search, by a file beside its journal.

A viewer appends a line to `commands.jsonl`. The process that searches reads the file before it asks for more work, and while it waits. A
command takes effect when it is journalled; a resumed attempt takes it from the journal, and a journalled command is never taken again.

Wake-ups for a file that other processes append to: by inotify on Linux, elsewhere by looks at its size.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import sys
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from exact.errors import JournalError

Name = Literal["pause", "resume", "stop", "expand", "prune", "allow", "refuse", "answer", "instruct", "act", "take"]
"""pause: begin no work and commit nothing. resume: end a pause. stop: search no more, and commit the best actions found so far. expand:
work on a state next. prune: search no further below a state, and do not commit the action that leads there. allow, refuse, answer: answer
a question to the person.
instruct: change the instruction. act: commit an action next. take: pause, so that the person uses the browser until `resume`."""


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of commands.jsonl."""

    id: str
    """Unique id of the command."""
    name: Name
    node: int = -1
    """Node to expand or prune; -1 for the other commands."""
    by: str = ""
    """Sender, in a few words."""
    question: str = ""
    """Id of the question that is answered."""
    text: str = ""
    """Answer to the agent's question, the new instruction, or the action."""


_decoder = msgspec.json.Decoder(Command)


def mailbox(journal: Path) -> Path:
    """Return the path of the commands to a journal's attempt."""
    return journal.with_name("commands.jsonl")


def send(journal: Path, name: Name, *, node: int = -1, by: str = "", question: str = "", text: str = "") -> Command:
    """Send a command to the attempt that writes a journal. Any process may, at any time. Raises JournalError."""
    command = Command(id=uuid.uuid4().hex, name=name, node=node, by=by[:80], question=question, text=text)
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
    """End the pause of an attempt, if the last command paused it."""
    sent = [command.name for command in Mailbox(mailbox(journal)).new() if command.name in ("pause", "resume", "stop")]
    if sent and sent[-1] == "pause":
        send(journal, "resume", by="exact resume")


class Mailbox:
    """A reader of commands as they come, each once."""

    def __init__(self, path: Path, known: Collection[str] = ()) -> None:
        """Read commands from a path. `known`: ids of commands that were taken before."""
        self.path, self._known = path, set(known)
        self._end = 0

    def new(self) -> Iterator[Command]:
        """Yield the commands sent since the last call. An invalid line is skipped, since no line in this file may end a search."""
        try:
            if self.path.stat().st_size <= self._end:
                return
            with self.path.open("rb") as file:
                file.seek(self._end)
                data = file.read()
        except OSError:
            return  # no command has been sent yet
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


POLL = 0.2
"""Seconds between two looks where the system tells nothing of files."""
_MODIFY, _MOVED_TO, _CREATE = 0x2, 0x80, 0x100
_FLAGS = os.O_NONBLOCK | getattr(os, "O_CLOEXEC", 0)
_READ = 65_536


@contextmanager
def watched(path: Path, changed: Callable[[], None]) -> Iterator[None]:
    """Call `changed` in the running loop soon after each change of a file, which need not exist yet. Its folder must."""
    if (notices := _notices(path)) is None:
        looking = asyncio.ensure_future(_look(path, _size(path), changed))
        try:
            yield
        finally:
            looking.cancel()
        return
    loop = asyncio.get_running_loop()

    def noticed() -> None:
        os.read(notices, _READ)
        _watch_file(notices, path)
        changed()

    loop.add_reader(notices, noticed)
    try:
        yield
    finally:
        loop.remove_reader(notices)
        os.close(notices)


def _notices(path: Path) -> int | None:
    """Return a descriptor that is readable once the file has changed; None where the system or the file system has no such thing."""
    if sys.platform != "linux":
        return None
    file = int(_libc().inotify_init1(_FLAGS))
    if file < 0:
        return None
    if _libc().inotify_add_watch(file, os.fsencode(path.parent), _CREATE | _MOVED_TO) < 0:
        os.close(file)
        return None
    _watch_file(file, path)
    return file


def _watch_file(file: int, path: Path) -> None:
    _libc().inotify_add_watch(file, os.fsencode(path), _MODIFY)  # fails until the file exists; its creation is noticed


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


async def _look(path: Path, known: int, changed: Callable[[], None]) -> None:
    """Call `changed` whenever a file's size differs from the one before. `known`: its size in bytes when the watch began."""
    while True:
        await asyncio.sleep(POLL)
        if (now := _size(path)) != known:
            known = now
            changed()


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1
