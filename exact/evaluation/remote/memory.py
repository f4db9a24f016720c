"""The memory of an agent in a file of this machine: attempts elsewhere get a copy, and what they learned is added here.

Attempts of one round recall from one version, so that the copies do not have to know of each other.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path

from exact.config import Config
from exact.errors import InfrastructureError
from exact.evaluation.folder import BenchFolder
from exact.models.open import Models
from exact.plugins import is_attribute, is_registered
from exact.reflection.memory import StoredMemory
from exact.runs.attempt.memory import MEMORY_GROUP, MemoryRounds, attempt_id, open_run_memory, recalled_ids, went_well
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import fold
from exact.runs.journal.store import RunFolder
from exact.task import Task


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
