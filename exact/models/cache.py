"""Cache of answers in one SQLite file, keyed by the question and the number of the sample."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
import time
from pathlib import Path
from typing import Literal

import msgspec

from exact.errors import ModelError, UsageError
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Choice, Image, Usage, WrappedModel
from exact.models.wire import SEEDS
from exact.text import without_key

Mode = Literal["read-write", "replay-only"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS answers (
    question BLOB NOT NULL, sample INTEGER NOT NULL, choice BLOB NOT NULL, model TEXT NOT NULL, created REAL NOT NULL,
    PRIMARY KEY (question, sample)
) WITHOUT ROWID
"""
_BUSY_SECONDS = 30.0


class Uncached(ModelError):
    """Raised when a question has no recorded answer and the mode is replay-only."""


class CachedSample(msgspec.Struct, frozen=True):
    """One sample of an answer."""

    choice: Choice
    model: str
    """Model name that the server gives."""


class AnswerCache:
    """SQLite file of answers. Threads and processes may share it; of two that store the same sample, the first wins."""

    def __init__(self, path: Path) -> None:
        """Open or create the file. Raises UsageError if it cannot be used as a cache."""
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"{path} cannot be used as a cache of answers ({error}): give another models.cache.path") from error

    def get(self, question: bytes, n: int) -> dict[int, CachedSample]:
        """Return the stored ones of samples 0 to n - 1, by number. Raises ModelError."""
        try:
            with self._lock:
                rows = self._connection.execute(
                    "SELECT sample, choice, model FROM answers WHERE question = ? AND sample < ?", (question, n)
                ).fetchall()
            return {sample: CachedSample(msgspec.json.decode(choice, type=Choice), model) for sample, choice, model in rows}
        except (sqlite3.Error, msgspec.DecodeError) as error:
            raise ModelError(f"the cache of answers {self.path} cannot be read ({error}): restore it, or give another") from error

    def put(self, question: bytes, samples: dict[int, CachedSample]) -> None:
        """Store samples that are not stored yet. Raises ModelError."""
        rows = [(question, i, msgspec.json.encode(sample.choice), sample.model, time.time()) for i, sample in samples.items()]
        try:
            with self._lock, self._connection:
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", rows)
        except sqlite3.Error as error:
            raise ModelError(f"the cache of answers {self.path} cannot be written ({error}): make room, or give another") from error

    def close(self) -> None:
        with self._lock:
            self._connection.close()


class CachedModel(WrappedModel):
    """A ChatModel that asks another one only for samples that are not in the cache.

    A sample from the cache uses no tokens and no money. Equal questions at the same time are asked one after the other, so that both have
    the same answers. A choice that is empty, or withheld by the server's filter, is not stored. An answer that cannot be stored is returned
    with a note.
    """

    def __init__(self, model: ChatModel, cache: AnswerCache, mode: Mode, *, about: str = "") -> None:
        """Wrap `model`. `about` names other things that answers depend on, such as further fields of the request."""
        super().__init__(model)
        self._cache, self._mode, self._about = cache, mode, about
        self._asking: dict[bytes, asyncio.Lock] = {}

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices. Raises ModelError; Uncached if the mode is replay-only and a sample is missing."""
        question = digest(request, self.name, self._about)
        lock = self._asking.setdefault(question, asyncio.Lock())
        try:
            async with lock:
                return await self._complete(request, question)
        finally:
            if not lock.locked():
                self._asking.pop(question, None)

    async def _complete(self, request: ChatRequest, question: bytes) -> ChatAnswer:
        n = request.sampling.n
        found = await asyncio.to_thread(self._cache.get, question, n)
        missing = [i for i in range(n) if i not in found]
        if not missing:
            return _replayed(found, n)
        if self._mode == "replay-only":
            raise Uncached(
                f"{self._cache.path} has no sample {missing[0]} of this question for the {request.role} ({request.prompt or 'no prompt'}) "
                f"of {self.name}: record it with models.cache.mode read-write"
            )
        answer = await self._model.complete(_rest(request, missing[0]))
        given = dict(enumerate(answer.choices, missing[0]))
        new = {i: CachedSample(given[i], answer.model) for i in missing}
        notes = answer.notes
        try:
            await asyncio.to_thread(self._cache.put, question, {i: sample for i, sample in new.items() if _lasting(sample.choice)})
        except ModelError as error:
            notes += (str(error),)
        found |= new
        return msgspec.structs.replace(answer, choices=tuple(found[i].choice for i in range(n)), replayed=n - len(missing), notes=notes)


def digest(request: ChatRequest, model: str, about: str = "") -> bytes:
    """Return the digest of the inputs of an answer: model, text, pictures and sampling.

    It does not depend on the number of samples or on the role: samples 0 to 3 of four are samples 0 to 3 of eight. Nor does it depend on
    the marks of fences, which differ between attempts.
    """
    messages = [
        [m.role, *(["image", part.media_type, hashlib.sha256(part.data).hexdigest()] if isinstance(part, Image) else without_key(part.text)
                   for part in m.parts), *([m.items] if m.items else [])]
        for m in request.sent()
    ]  # fmt: skip
    drawn = msgspec.structs.replace(request.sampling, n=1)
    asked: list[object] = [model, about, messages, drawn, request.schema, *([request.grammar] if request.grammar else [])]
    asked += [] if request.screen is None else [request.screen]
    normal = msgspec.json.encode(asked, order="deterministic")
    return hashlib.sha256(normal).digest()


def _rest(request: ChatRequest, first: int) -> ChatRequest:
    """Return the question for the samples from number `first` on, each with the seed that it has in the whole question."""
    n, seed = request.sampling.n - first, request.sampling.seed
    sampling = msgspec.structs.replace(request.sampling, n=n, seed=None if seed is None else (seed + first) % SEEDS)
    return msgspec.structs.replace(request, sampling=sampling)


def _lasting(choice: Choice) -> bool:
    return choice.finish not in ("empty", "content_filter")


def _replayed(found: dict[int, CachedSample], n: int) -> ChatAnswer:
    choices = tuple(found[i].choice for i in range(n))
    raw = msgspec.json.encode({"replayed": choices}).decode()
    return ChatAnswer(choices=choices, usage=Usage(cost=0.0), model=found[0].model, raw=raw, replayed=n)
