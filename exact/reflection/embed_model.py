"""Embeddings by a model at an OpenAI-compatible endpoint, with a cache of vectors."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from exact.errors import ModelError, UsageError
from exact.models.embedding import EmbeddingModel
from exact.reflection.embed import Vector, unit

_TABLE = "CREATE TABLE IF NOT EXISTS vectors (model TEXT, text BLOB, vector BLOB NOT NULL, PRIMARY KEY (model, text)) WITHOUT ROWID"
_WAIT = 30.0
"""Seconds to wait for another process's write."""


class ModelEmbedding:
    """An Embedding that asks a model for texts that are not in its cache.

    Call it from other threads than that of the model's event loop.
    """

    def __init__(self, model: EmbeddingModel, loop: asyncio.AbstractEventLoop, dimensions: int, cache: Path) -> None:
        """Take the cache, an SQLite file that processes may share. Raises UsageError. See `opened`."""
        self._model, self._loop, self.dimensions, self._path = model, loop, dimensions, cache
        self._lock = threading.Lock()
        try:
            cache.parent.mkdir(parents=True, exist_ok=True)
            self._cache = sqlite3.connect(cache, timeout=_WAIT, isolation_level=None, check_same_thread=False)
            self._cache.execute("PRAGMA journal_mode = WAL")
            self._cache.execute("PRAGMA synchronous = NORMAL")
            self._cache.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            raise UsageError(f"{cache} cannot be used as a cache of embeddings ({error}): move it away") from error

    @classmethod
    async def opened(cls, model: EmbeddingModel, cache: Path) -> ModelEmbedding:
        """Return an embedding with the length of the model's vectors. Raises ModelError, UsageError."""
        (vector,) = (await model.embed(["length"])).vectors
        return cls(model, asyncio.get_running_loop(), len(vector), cache)

    @property
    def name(self) -> str:
        return f"{self._model.name}:{self.dimensions}"

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector of length 1 for each text, or 0 for one without words. Raises ModelError."""
        wanted = dict.fromkeys(text for text in texts if text.strip())
        found = {text: vector for text in wanted if (vector := self._cached(text)) is not None}
        missing = [text for text in wanted if text not in found]
        if missing:
            answer = asyncio.run_coroutine_threadsafe(self._model.embed(missing), self._loop).result()
            for text, values in zip(missing, answer.vectors, strict=True):
                if len(values) != self.dimensions:
                    raise ModelError(f"{self._model.name} gave {len(values)} numbers after vectors of {self.dimensions}: see its server")
                found[text] = unit(np.array(values, dtype=np.float64))
                self._keep(text, found[text])
        return [found.get(text, np.zeros(self.dimensions, dtype=np.float32)) for text in texts]

    def close(self) -> None:
        with self._lock:
            self._cache.close()

    def _cached(self, text: str) -> Vector | None:
        found = self._rows("SELECT vector FROM vectors WHERE model = ? AND text = ?", self.name, _digest(text))
        return np.frombuffer(found[0][0], dtype="<f4").astype(np.float32) if found else None

    def _keep(self, text: str, vector: Vector) -> None:
        self._rows("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?)", self.name, _digest(text), vector.astype("<f4").tobytes())

    def _rows(self, statement: str, *arguments: object) -> list[tuple[bytes, ...]]:
        """Return the rows of texts. Raises ModelError."""
        try:
            with self._lock:
                return self._cache.execute(statement, arguments).fetchall()
        except sqlite3.Error as error:
            raise ModelError(f"the cache of embeddings {self._path} fails ({error}): make room, or move it away") from error


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
