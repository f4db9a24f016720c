"""The memory of a run: opened as configured, frozen in rounds, told what became of those it helped."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from exact.config import Config
from exact.errors import JournalError
from exact.reflection.memory import StoredMemory, open_memory
from exact.runs.journal.state import State
from exact.runs.journal.store import write_whole
from exact.task import Task

if TYPE_CHECKING:
    from exact.models.open import Models
    from exact.reflection.embed import Embedding


@asynccontextmanager
async def memory_of(config: Config, folder: Path, models: Models) -> AsyncIterator[StoredMemory | None]:
    """The memory of a configuration; None where nothing is reflected on. Raises UsageError."""
    settings = config.reflection
    if settings.kind == "none":
        yield None
        return
    where = settings.memory or folder / "memory.sqlite"
    if settings.embedding != "model":
        with open_memory(where, embedding=_offline(settings.embedding), capacity=settings.capacity) as memory:
            yield memory
        return
    from exact.reflection.embed_model import ModelEmbedding

    embedding = await ModelEmbedding.opened(models.embedding(), folder / "embeddings.sqlite")
    try:
        # In a thread: bringing an old file up to date asks the model, which answers on this one.
        with await asyncio.to_thread(open_memory, where, embedding=embedding, capacity=settings.capacity) as memory:
            yield memory
    finally:
        embedding.close()


def _offline(name: Literal["hashed", "minilm"]) -> Embedding:
    if name == "minilm":
        from exact.reflection.embed_minilm import MiniLMEmbedding

        return MiniLMEmbedding()
    from exact.reflection.embed import HashedEmbedding

    return HashedEmbedding()


class Rounds:
    """Which version of the memory each round of a run's tasks is shown; kept in the run's folder, so that a resumed run goes on alike.

    Several processes may do tasks of one run: whoever is the first in a round says which version is that of all.
    """

    def __init__(self, folder: Path, size: int) -> None:
        """`size`: tasks in a round; 0: each task is shown all that was learned before it."""
        self._path, self._size, self._now = folder / "rounds.json", size, ""

    def begin(self, memory: StoredMemory, index: int) -> None:
        """Before the task of an index in the run: freeze the memory to its round's version. Raises JournalError."""
        if not self._size:
            return
        round = str(index // self._size)
        if round == self._now:
            return
        try:
            with self._alone():
                versions = msgspec.json.decode(self._path.read_bytes(), type=dict[str, str]) if self._path.exists() else {}
                version = memory.freeze(versions.get(round))
                if round not in versions:
                    write_whole(self._path, msgspec.json.encode({**versions, round: version}))
        except OSError as error:
            raise JournalError(f"cannot keep {self._path}: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise JournalError(f"{self._path} does not read: {error}") from error
        self._now = round

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """While this runs, no other lane or process looks which version a round has. The file itself is replaced: it cannot be locked."""
        with self._path.with_name(".rounds.lock").open("ab") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def shown(state: State) -> set[str]:
    """Ids of the reflections that an attempt was shown."""
    return {each.id for recalled in state.recalled.values() for each in recalled.reflections}


def went_well(config: Config, state: State) -> bool | None:
    """Whether an attempt did, as far as memory may know: by the agent's own judgement where that was sure, or as the benchmark says."""
    if config.reflection.outcome == "evaluator" and state.scored:
        return state.scored.score.success
    if state.judged is None or abs(2 * state.judged.evaluation.value - 1) < config.reflection.confidence:
        return None
    return state.judged.evaluation.value >= 0.5


def attempt_id(agent: str, task: Task, journal: Path) -> str:
    """One name for an attempt, also when it is gone on with: agent, task, and a digest of where its journal lies."""
    return f"{agent} {task.id} {hashlib.blake2b(str(journal.resolve()).encode(), digest_size=8).hexdigest()}"
