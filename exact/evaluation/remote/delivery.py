"""What an attempt elsewhere writes, on its way: read from its folder there, written into the benchmark's folder here."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from exact.errors import JournalError
from exact.runs.journal.file import Journal
from exact.runs.journal.store import RunFolder, write_whole
from exact.task import Task

Kind = Literal["begun", "blob", "journal", "file", "log"]
BATCH = 4 << 20
"""Bytes that are sent at once, or one item more."""
_PLAIN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*")
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
        self._run, self._folder = run, run.task_folder(task)
        self._journal = Journal(self._folder / "journal.jsonl")

    def take(self, items: Iterable[DeliveryItem]) -> None:
        """Write items in their order. Raises JournalError."""
        for kind, name, data in items:
            try:
                self._write(kind, name, data)
            except OSError as error:
                raise JournalError(f"cannot write {self._folder}: {error.strerror}: free some space, then resume") from error

    def close(self) -> None:
        """Release the journal. May be called twice."""
        self._journal.close()

    def _write(self, kind: Kind, name: str, data: bytes) -> None:
        match kind:
            case "journal":
                self._journal.append(data)
            case "blob":
                path = self._run.blobs.folder / name[:2] / name
                if hashlib.sha256(data).hexdigest() != name:
                    raise JournalError(f"blob {name[:12]!r} of {self._folder.name} arrived with another content")
                path.parent.mkdir(parents=True, exist_ok=True)
                if not path.exists():
                    write_whole(path, data)
            case "file":
                if not _PLAIN.fullmatch(name) or name in _NEVER:
                    raise JournalError(f"{name!r} is no file of an attempt")
                write_whole(self._folder / name, data)
            case "log":
                with (self._run.path / "guest.log").open("ab") as file:
                    file.write(data)
            case "begun":
                pass


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
