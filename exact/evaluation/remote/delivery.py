"""What an attempt elsewhere writes, on its way: read from its folder there, written into the benchmark's folder here."""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from exact.errors import InfrastructureError, JournalError
from exact.inert import inert
from exact.runs.journal.events import Opened
from exact.runs.journal.file import Journal, events_of
from exact.runs.journal.store import RunFolder, write_whole
from exact.task import Task

Kind = Literal["begun", "blob", "journal", "file", "log"]
BATCH = 4 << 20
"""Bytes that are sent at once, or one item more."""
MOST_ITEM, MOST = 256 << 20, 4 << 30
"""Most bytes of one item, and of all that one attempt sends."""
_MOST_FILES = 1000
"""Most files beside a journal."""
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
_NEVER = {"journal.jsonl", "report.html"}


class DeliveryItem(NamedTuple):
    """A piece of what an attempt wrote."""

    kind: Kind
    """`begun`: the attempt has a process, on the node `name`. `blob`: a content. `journal`: whole lines. `file`: a file of the task's
    folder. `log`: text for the run's guest.log."""
    name: str = ""
    data: bytes = b""


class Outgoing:
    """What has been written to a run folder since the last look. What a journal's line refers to goes before the line."""

    def __init__(self, run: RunFolder, task: Task) -> None:
        """Start with what the folder holds now, which the receiver has."""
        self._run, self._folder = run, run.task_folder(task)
        self._journal, self._log = self._folder / "journal.jsonl", run.path / "guest.log"
        self._lines, self._text = _size(self._journal), _size(self._log)
        self._sent = {path.name for path in self._blobs()}

    def new(self) -> list[DeliveryItem]:
        """Return the new items."""
        lines = _from(self._journal, self._lines)
        lines = lines[: lines.rfind(b"\n") + 1]
        blobs = [path for path in self._blobs() if path.name not in self._sent]
        items = [DeliveryItem("blob", path.name, path.read_bytes()) for path in blobs]
        self._sent |= {path.name for path in blobs}
        if lines:
            items.append(DeliveryItem("journal", data=lines))
            self._lines += len(lines)
        if text := _from(self._log, self._text):
            items.append(DeliveryItem("log", data=text))
            self._text += len(text)
        return items

    def rest(self) -> list[DeliveryItem]:
        """Return what is left once the attempt has ended: new items, and the files beside its journal."""
        files = (path for path in self._folder.glob("*") if path.name not in _NEVER and path.is_file())
        others = sorted(path for path in files if _PLAIN.fullmatch(path.name))
        return [*self.new(), *(DeliveryItem("file", path.name, path.read_bytes()) for path in others)]

    def _blobs(self) -> Iterator[Path]:
        return (path for path in self._run.blobs.folder.glob("??/*") if not path.name.startswith("."))


class Incoming:
    """The journal, blobs and files of an attempt elsewhere, written here as they come. It holds the journal as its writer."""

    def __init__(self, run: RunFolder, task: Task) -> None:
        """Open the journal. Raises JournalError where another process writes it."""
        self._run, self._task, self._folder = run, task, run.task_folder(task)
        self._journal = Journal(self._folder / "journal.jsonl")
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._bytes, self._files = 0, set[str]()

    def take(self, items: Iterable[DeliveryItem]) -> None:
        """Write items in their order.

        Raises InfrastructureError for what no attempt sends, and writes nothing of that item; JournalError where nothing can be written.
        """
        for item in items:
            self._bytes += len(item.data)
            if len(item.data) > MOST_ITEM or self._bytes > MOST:
                raise InfrastructureError(f"sent {self._bytes:,} bytes, more than any attempt")
            try:
                self._write(item)
            except OSError as error:
                raise JournalError(f"cannot write {self._folder}: {error.strerror}: free some space, then resume") from error

    def close(self) -> None:
        """Release the journal. May be called twice."""
        self._journal.close()

    def _write(self, item: DeliveryItem) -> None:
        kind, name, data = item
        match kind:
            case "journal":
                self._check(data)
                self._journal.append(data)
            case "blob":
                if hashlib.sha256(data).hexdigest() != name:
                    raise InfrastructureError(f"sent a blob that is not {inert(name, 12)!r}")
                path = self._run.blobs.folder / name[:2] / name
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    write_whole(path, data)
            case "file":
                self._files.add(name)
                if not _PLAIN.fullmatch(name) or name.casefold() in _NEVER or len(self._files) > _MOST_FILES:
                    raise InfrastructureError(f"sent {inert(name, 80)!r}, which is no file of an attempt")
                write_whole(self._folder / name, data)
            case "log":
                with (self._run.path / "guest.log").open("a", encoding="utf-8", newline="") as file:
                    file.write(inert(self._decode(data)))
            case "begun":
                pass

    def _check(self, lines: bytes) -> None:
        """Raise InfrastructureError where lines are no events of an attempt at the task."""
        try:
            for event in events_of(lines):
                if isinstance(event, Opened) and event.task.id != self._task.id:
                    raise InfrastructureError(f"sent the journal of {inert(event.task.id, 80)!r}")
        except JournalError as error:
            raise InfrastructureError(f"sent what is no journal: {inert(str(error), 200)}") from error


def items_of(sent: object) -> list[DeliveryItem]:
    """Return what was sent as items. Raises InfrastructureError where it is something else."""
    try:
        return msgspec.convert(sent, list[DeliveryItem], builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise InfrastructureError(f"sent something else than parts of an attempt: {error}") from error


def batches(items: Iterable[DeliveryItem]) -> Iterator[list[DeliveryItem]]:
    """Yield the items in batches of about BATCH bytes."""
    batch, size = list[DeliveryItem](), 0
    for item in items:
        batch.append(item)
        size += len(item.data)
        if size >= BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _from(path: Path, start: int) -> bytes:
    if not path.exists():
        return b""
    with path.open("rb") as file:
        file.seek(start)
        return file.read()
