"""Text as vectors without a model: hashed words, word pairs and letter groups."""

from __future__ import annotations

import hashlib
import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]

_WORD = re.compile(r"\w+")
_WEIGHT = {"w": 1.0, "p": 0.5, "c": 0.25}
"""Of a word, a pair of neighbouring words, a group of letters in a word."""


class Embedding(Protocol):
    """Maps texts to vectors of one length whose cosine is their likeness."""

    @property
    def name(self) -> str:
        """Identifies the mapping: vectors of different names are not comparable."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed(self, text: str) -> Vector:
        """A vector of length 1, or 0 for a text without words."""
        ...


class HashedEmbedding:
    """Feature hashing with signs (Weinberger et al. 2009, arXiv:0902.2206); a feature seen n times weighs 1 + ln n.

    The same text gives the same vector in every process and on every machine.
    """

    def __init__(self, dimensions: int = 1024) -> None:
        self.dimensions = dimensions
        self.name = f"hashed-1:{dimensions}"

    def embed(self, text: str) -> Vector:
        """The text's vector, of length 1; all zeros for a text without words."""
        vector = np.zeros(self.dimensions, dtype=np.float64)
        for feature, count in Counter(_features(text)).items():
            digest = int.from_bytes(hashlib.blake2b(feature.encode("utf-8", "replace"), digest_size=8).digest(), "little")
            weight = _WEIGHT[feature[0]] * (1 + math.log(count))
            vector[(digest >> 1) % self.dimensions] += weight if digest & 1 else -weight
        return unit(vector)


def unit(vector: npt.NDArray[np.floating]) -> Vector:
    """The vector at length 1, or all zeros."""
    length = float(np.linalg.norm(vector))
    return (vector / length if length else vector).astype(np.float32)


def _features(text: str) -> Iterator[str]:
    words = _WORD.findall(text.casefold())
    for word in words:
        yield f"w{word}"
        marked = f"<{word}>"
        for size in (3, 4):
            yield from (f"c{marked[i : i + size]}" for i in range(len(marked) - size + 1))
    yield from (f"p{left} {right}" for left, right in itertools.pairwise(words))
