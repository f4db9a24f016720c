"""The memory of a run: opened as configured, frozen in rounds, told what became of those it helped."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from exact.config import Config
from exact.reflection.memory import StoredMemory, open_memory
from exact.runs.fold import State
from exact.runs.store import write_whole
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
    """Which version of the memory each round of a run's tasks is shown; kept in the run's folder, so that a resumed run goes on alike."""

    def __init__(self, folder: Path, size: int) -> None:
        """`size`: tasks in a round; 0: each task is shown all that was learned before it."""
        self._path, self._size, self._now = folder / "rounds.json", size, ""
        self._versions = msgspec.json.decode(self._path.read_bytes(), type=dict[str, str]) if self._path.exists() else {}

    def begin(self, memory: StoredMemory, index: int) -> None:
        """Before the task of an index in the run: freeze the memory to its round's version."""
        if not self._size:
            return
        round = str(index // self._size)
        if round == self._now:
            return
        version = memory.freeze(self._versions.get(round))
        if round not in self._versions:
            self._versions[round] = version
            write_whole(self._path, msgspec.json.encode(self._versions))
        self._now = round


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
