"""Text as vectors: hashed words, word pairs and letter groups without a model, or what a model behind an endpoint gives."""

from __future__ import annotations

import functools
import math
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Protocol

import numpy as np
import numpy.typing as npt

from exact.errors import UsageError

Vector = npt.NDArray[np.float32]
_Hashes = npt.NDArray[np.uint64]

_WORD = re.compile(r"\w+")
_LENGTH = 32
"""Of a longer word the rest does not count."""
_PAIR, _GROUP = 0.5, 0.25
"""What a pair of neighbouring words and a group of letters weigh, where a word weighs 1."""
_VECTORS = 1024
"""Texts whose vectors are kept: a goal stays the same over a task, and a state is looked up for the policy and for the value function."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Embedding(Protocol):
    """Maps texts to vectors of one length whose cosine is their likeness."""

    @property
    def name(self) -> str:
        """Identifies the mapping with its version: vectors of different names are not comparable."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """A vector of length 1 for each text, or 0 for one without words. Raises ModelError."""
        ...


class HashedEmbedding:
    """Feature hashing with signs (Weinberger et al. 2009, arXiv:0902.2206); a feature seen n times weighs (1 + ln n) times its idf.

    The inverse document frequencies are fixed ones, of words on web pages (`embed_words.txt`): a vector does not depend on what else was
    embedded. The same text gives the same vector in every process and on every machine.
    """

    def __init__(self, dimensions: int = 384) -> None:
        self.dimensions = dimensions
        self.name = f"hashed-2:{dimensions}"
        self._made = functools.lru_cache(maxsize=_VECTORS)(self._computed)

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        return [self.embed(text) for text in texts]

    def embed(self, text: str) -> Vector:
        """The text's vector, of length 1; all zeros for a text without words. Not to be changed: it is kept for when it is asked again."""
        return self._made(text)

    def _computed(self, text: str) -> Vector:
        found = [_word(word[:_LENGTH]) for word in _WORD.findall(text.casefold())]
        if not found:
            return np.zeros(self.dimensions, dtype=np.float32)
        heads = np.array([hashes[0] for hashes, _ in found], dtype=np.uint64)
        idf = np.array([weights[0] for _, weights in found])
        pairs = (heads[:-1] * np.uint64(31) + heads[1:]) * _SPREAD
        hashes = np.concatenate([*(each for each, _ in found), pairs])
        weights = np.concatenate([*(each for _, each in found), _PAIR * np.sqrt(idf[:-1] * idf[1:])])
        distinct, first, counts = np.unique(hashes, return_index=True, return_counts=True)
        signed = weights[first] * (1 + np.log(counts)) * np.where(distinct & np.uint64(1), 1.0, -1.0)
        places = ((distinct >> np.uint64(20)) % np.uint64(self.dimensions)).astype(np.int64)
        return unit(np.bincount(places, weights=signed, minlength=self.dimensions).astype(np.float64))


class AsWritten:
    """Stands for an embedding that is not at hand, so that what it made can be kept."""

    def __init__(self, name: str) -> None:
        """`name` as the embedding gave it: its number of dimensions stands last."""
        tail = name.rpartition(":")[2]
        self.name, self.dimensions = name, int(tail) if tail.isdecimal() else 0

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Raises UsageError where there is anything to embed."""
        if texts:
            raise UsageError(f"nothing here makes vectors of {self.name}: name the configuration that does with --config")
        return []


def words(text: str) -> dict[str, float]:
    """The distinct words of a text, and how much each says: its idf, in (0, 1]."""
    return {word: idf(word) for word in dict.fromkeys(_WORD.findall(text.casefold()))}


def idf(word: str) -> float:
    """How much a word says, in (0, 1]: 1 if it stands on no page that was counted, near 0.2 if it stands on nearly all."""
    pages, counts = _frequencies()
    return math.sqrt(math.log((pages + 1) / (counts[word] + 0.5)) / math.log((pages + 1) / 0.5)) if word in counts else 1.0


def unit(vector: npt.NDArray[np.floating]) -> Vector:
    """The vector at length 1, or all zeros."""
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)


@functools.lru_cache(maxsize=50_000)
def _word(word: str) -> tuple[_Hashes, npt.NDArray[np.float64]]:
    """Hashes and weights of a word and of its groups of letters; the word's own come first."""
    marked = f"<{word}>"
    groups = Counter(marked[i : i + size] for size in (3, 4) for i in range(len(marked) - size + 1))
    features = [f"w{word}", *(f"c{group}" for group in groups)]
    weight = idf(word)
    hashes = np.array([_hash(feature) for feature in features], dtype=np.uint64)
    return hashes, np.array([weight] + [_GROUP * weight] * len(groups))


def _hash(feature: str) -> int:
    data = feature.encode("utf-8", "replace")
    return ((zlib.crc32(data) << 32 | zlib.adler32(data)) * int(_SPREAD)) & (2**64 - 1)


@functools.cache
def _frequencies() -> tuple[int, dict[str, int]]:
    """Pages counted, and on how many of them each word stands."""
    text = (resources.files("exact.reflection") / "embed_words.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    counts = {word: int(count) for word, count in lines}
    return counts.pop("<pages>"), counts
