"""Delivery of the files that an attempt elsewhere writes: read from its folder there, written into the benchmark's folder here.

The memory of an agent in a file of this machine: attempts elsewhere get a copy, and their new reflections are added here.

Attempts of one round recall from one version, so that the copies do not have to know of each other.
"""

from __future__ import annotations

import asyncio
import codecs
import hashlib
import re
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from exact.config import Config
from exact.errors import InfrastructureError, JournalError
from exact.evaluation.folder import BenchFolder
from exact.models.open import Models
from exact.plugins import is_attribute, is_registered
from exact.reflection.memory.open import StoredMemory
from exact.runs.attempt.memory import MEMORY_GROUP, MemoryRounds, attempt_id, open_run_memory, recalled_ids, went_well
from exact.runs.journal import events as ev
from exact.runs.journal.events import Opened
from exact.runs.journal.file import Journal, events_of, read_journal
from exact.runs.journal.state import fold
from exact.runs.journal.store import RunFolder, write_whole
from exact.task import Task
from exact.text import inert

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
    """A piece of an attempt's files."""

    kind: Kind
    """`begun`: the attempt has a process, on the node `name`. `blob`: a content. `journal`: whole lines. `file`: a file of the task's
    folder. `log`: text for the run's guest.log."""
    name: str = ""
    data: bytes = b""


class Outgoing:
    """New contents of a run folder since the last look. A blob goes before the journal line that refers to it."""

    def __init__(self, run: RunFolder, task: Task) -> None:
        """Start with the present contents of the folder, which the receiver has."""
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
        """Return the rest once the attempt has ended: new items, and the files beside its journal."""
        files = (path for path in self._folder.glob("*") if path.name not in _NEVER and path.is_file())
        others = sorted(path for path in files if _PLAIN.fullmatch(path.name))
        return [*self.new(), *(DeliveryItem("file", path.name, path.read_bytes()) for path in others)]

    def _blobs(self) -> Iterator[Path]:
        return (path for path in self._run.blobs.folder.glob("??/*") if not path.name.startswith("."))


class Incoming:
    """The journal, blobs and files of an attempt elsewhere, written here as they come. It holds the journal as its writer."""

    def __init__(self, run: RunFolder, task: Task) -> None:
        """Open the journal. Raises JournalError if another process writes it."""
        self._run, self._task, self._folder = run, task, run.task_folder(task)
        self._journal = Journal(self._folder / "journal.jsonl")
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._bytes, self._files = 0, set[str]()

    def take(self, items: Iterable[DeliveryItem]) -> None:
        """Write items in their order.

        Raises InfrastructureError for an item that no attempt sends, and writes nothing of it; JournalError if nothing can be written.
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
        """Raise InfrastructureError if lines are not events of an attempt at the task."""
        try:
            for event in events_of(lines):
                if isinstance(event, Opened) and event.task.id != self._task.id:
                    raise InfrastructureError(f"sent the journal of {inert(event.task.id, 80)!r}")
        except JournalError as error:
            raise InfrastructureError(f"sent what is no journal: {inert(str(error), 200)}") from error


def items_of(sent: object) -> list[DeliveryItem]:
    """Return a sent object as items. Raises InfrastructureError if it is something else."""
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


def is_carried(config: Config) -> bool:
    """Return whether an agent's reflections are in a file of this machine: other memories are reached from every node."""
    where = config.reflection.memory
    elsewhere = where.startswith(("postgresql://", "postgres://")) or is_attribute(where) or is_registered(where, MEMORY_GROUP)
    return config.reflection.kind != "none" and not elsewhere


@asynccontextmanager
async def carried_memories(folder: BenchFolder) -> AsyncIterator[Mapping[str, CarriedMemory]]:
    """Open the memories that travel, by agent. Raises UsageError."""
    found = dict[str, CarriedMemory]()
    async with AsyncExitStack() as stack:
        for agent in folder.plan.agents:
            run, config = folder.agent(agent)
            if is_carried(config):
                models = Models(config.models, folder=run.path)
                stack.push_async_callback(models.close)
                memory = await stack.enter_async_context(open_run_memory(config, run.path, models))
                assert isinstance(memory, StoredMemory)
                found[agent] = CarriedMemory(memory, Path(config.reflection.memory or run.path / "memory.sqlite"), run, config)
        yield found


class CarriedMemory:
    """A memory, its file, and the run and the agent that it belongs to."""

    def __init__(self, memory: StoredMemory, path: Path, run: RunFolder, config: Config) -> None:
        self._memory, self._path, self._run, self._config = memory, path, run, config
        self._rounds = MemoryRounds(run.path, config.reflection.round)
        self._positions = {task.id: position for position, task in enumerate(run.manifest.tasks)}

    async def copy(self, task: Task) -> bytes:
        """Return the SQLite file, after the version of a task's round was written to the run's rounds.json. Raises InfrastructureError."""
        return await asyncio.to_thread(self._copied, task)

    async def learn(self, task: Task) -> None:
        """Add the reflections that an ended attempt's journal holds, and how those that it recalled served. Raises InfrastructureError."""
        await asyncio.to_thread(self._learned, task)

    def _copied(self, task: Task) -> bytes:
        self._rounds.begin(self._memory, self._positions[task.id])
        try:
            with closing(sqlite3.connect(self._path)) as source, closing(sqlite3.connect(":memory:")) as copy:
                source.backup(copy)
                return copy.serialize()
        except sqlite3.Error as error:
            raise InfrastructureError(f"the memory {self._path} cannot be copied: {error}") from error

    def _learned(self, task: Task) -> None:
        journal = self._run.task_folder(task) / "journal.jsonl"
        events = list(read_journal(journal))
        if learned := [event.reflection for event in events if isinstance(event, ev.Reflected)]:
            self._memory.add_all(learned)
        state = fold(self._config, events)
        if used := recalled_ids(state):
            self._memory.used(attempt_id(self._config.name, task, journal), used, went_well(self._config, state))
