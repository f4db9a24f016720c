"""What is sent to another machine: once for a benchmark, and once for each attempt."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.config import Config
from exact.errors import JournalError
from exact.evaluation.folder import BenchFolder
from exact.evaluation.plan import Plan
from exact.evaluation.remote.shipped import Shipped, collect
from exact.runs.journal.store import Blobs, RunFolder, write_whole
from exact.task import Task

_BLOB = re.compile(rb"[0-9a-f]{64}")

What = Literal["persists", "attempt", "replay"]
"""Method of an Engine that is called elsewhere."""


class Cargo(msgspec.Struct, frozen=True, kw_only=True):
    """The part that is the same for all attempts of a benchmark. It holds no key: nodes take them from their own environment."""

    plan: Plan
    configs: dict[str, Config]
    """Configuration of each agent, as recorded: with placeholders in place of secrets."""
    shipped: Shipped
    make: str
    """`module:function` that makes a local engine from a BenchFolder and `arguments`."""
    arguments: tuple[Any, ...] = ()

    @classmethod
    def of(cls, folder: BenchFolder, *, make: str, arguments: tuple[object, ...], carried: Iterable[str]) -> Cargo:
        """Return the cargo of a benchmark. `carried`: agents whose memory travels with each attempt. Raises UsageError."""
        plan, carried = folder.plan, set(carried)
        configs = {agent: folder.agent(agent)[1] for agent in plan.agents}
        shipped = collect(configs.values(), plan.tasks)
        for agent in carried:
            reflection = msgspec.structs.replace(configs[agent].reflection, memory="")
            configs[agent] = msgspec.structs.replace(configs[agent], reflection=reflection)
        return cls(plan=plan, configs=configs, shipped=shipped, make=make, arguments=arguments)

    def unpack(self, folder: Path) -> BenchFolder:
        """Write a benchmark's folder without results. Its paths lead to the files that came along."""
        files = folder / "shipped"
        self.shipped.unpack(files)
        tasks = tuple(self.shipped.task_in(files, task) for task in self.plan.tasks)
        configs = {agent: self.shipped.config_in(files, config) for agent, config in self.configs.items()}
        return BenchFolder.create(folder / "bench", msgspec.structs.replace(self.plan, tasks=tasks), configs)


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """One call of an engine elsewhere, with what an earlier attempt at the task left."""

    what: What
    agent: str
    task: str
    """Id of the task."""
    journal: bytes = b""
    blobs: dict[str, bytes] = {}
    """Contents that the journal refers to, by name."""
    memory: bytes = b""
    """SQLite file of the agent's reflections; empty where none travels."""
    rounds: bytes = b""
    """Content of the run's rounds.json."""

    @classmethod
    def of(cls, what: What, run: RunFolder, agent: str, task: Task, *, memory: bytes = b"") -> Parcel:
        """Return the parcel of a call. Raises JournalError."""
        rounds = run.path / "rounds.json"
        journal = b"" if what == "persists" else _whole_lines(run.task_folder(task) / "journal.jsonl")
        return cls(
            what=what, agent=agent, task=task.id, journal=journal, blobs=_blobs_of(journal, run.blobs), memory=memory,
            rounds=rounds.read_bytes() if memory and rounds.exists() else b"",
        )  # fmt: skip

    def unpack(self, run: RunFolder, task: Task) -> None:
        """Write the parcel into a run folder that holds nothing of the task."""
        if self.journal:
            place = run.task_folder(task) / "journal.jsonl"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(self.journal)
        for data in self.blobs.values():
            run.blobs.put(data)
        for left in run.path.glob("memory.sqlite-*") if self.memory else ():
            left.unlink()  # of the file that is replaced
        for name, data in (("memory.sqlite", self.memory), ("rounds.json", self.rounds)):
            if data:
                write_whole(run.path / name, data)


def _whole_lines(journal: Path) -> bytes:
    """Return a journal without a torn last line; nothing where there is none. Raises JournalError."""
    try:
        data = journal.read_bytes() if journal.exists() else b""
    except OSError as error:
        raise JournalError(f"cannot read {journal}: {error.strerror}") from error
    return data[: data.rfind(b"\n") + 1]


def _blobs_of(text: bytes, blobs: Blobs) -> dict[str, bytes]:
    """Return the contents that a text refers to, and those that these refer to. What is missing is reported where it is used."""
    found, waiting = dict[str, bytes](), set(_BLOB.findall(text))
    while waiting:
        name = waiting.pop().decode()
        if name not in found:
            with suppress(JournalError):  # another digest, such as that of the configuration
                found[name] = blobs.get(name)
                waiting |= set(_BLOB.findall(found[name]))
    return found
