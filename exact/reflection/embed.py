"""Embeddings of text: hashed words, word pairs and letter groups without a model, or the vectors of a model at an endpoint.

Situations that reflections are retrieved by, as vectors and as words.
"""

from __future__ import annotations

import functools
import hashlib
import math
import re
import threading
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from math import fsum
from typing import TYPE_CHECKING, Protocol

from exact.context import Context, Reflection
from exact.errors import UsageError
from exact.reflection.record import shortened, site

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

_WORD = re.compile(r"\w+")
_LENGTH = 32
"""Most letters of a word that count."""
_PAIR, _GROUP = 0.5, 0.25
"""Weights of a pair of neighbouring words and of a group of letters, relative to a word, which weighs 1."""
_VECTORS = 1024
"""Texts whose vectors are cached: a goal stays the same over a task, and a state is looked up for the policy and for the value function."""
_SPREAD = 0x9E3779B97F4A7C15


class Embedding(Protocol):
    """A mapping of texts to vectors of one length, whose cosine is the similarity of the texts."""

    @property
    def name(self) -> str:
        """Name and version of the mapping. Vectors of different names are not comparable."""
        ...

    @property
    def dimensions(self) -> int: ...

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector of length 1 for each text, or 0 for one without words. Raises ModelError."""
        ...


class HashedEmbedding:
    """Feature hashing with signs (Weinberger et al. 2009, arXiv:0902.2206); a feature seen n times weighs (1 + ln n) times its idf.

    The inverse document frequencies are fixed ones, of words on web pages (`embed_words.txt`): a vector does not depend on other embedded
    texts. The same text gives the same vector in every process and on every machine.
    """

    def __init__(self, dimensions: int = 256) -> None:
        self.dimensions = dimensions
        self.name = f"hashed-2:{dimensions}"
        self._made: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Return a vector for each text. Callers must not change them, because they are cached."""
        with self._lock:
            found = {text: self._made[text] for text in texts if text in self._made}
        new = [text for text in dict.fromkeys(texts) if text not in found]
        if new:
            found.update(zip(new, self._computed(new), strict=True))
        with self._lock:
            for text, vector in found.items():
                self._made[text] = vector
                self._made.move_to_end(text)
            while len(self._made) > _VECTORS:
                self._made.popitem(last=False)
        return [found[text] for text in texts]

    def embed(self, text: str) -> Vector:
        """Return the text's vector, of length 1; all zeros for a text without words."""
        return self.embed_all([text])[0]

    def _computed(self, texts: Sequence[str]) -> list[Vector]:
        """Compute all vectors together, because calls take more time than arithmetic."""
        import numpy as np

        found = [[_word(word[:_LENGTH]) for word in _WORD.findall(text.casefold())] for text in texts]
        flat = [each for words in found for each in words]
        if not flat:
            return [np.zeros(self.dimensions, dtype=np.float32) for _ in texts]
        hashes, sizes = np.frombuffer(b"".join([each for each, _ in flat]), dtype=np.uint64), np.array([len(each) // 8 for each, _ in flat])
        own, text = np.cumsum(sizes) - sizes, np.repeat(np.arange(len(texts)), [len(words) for words in found])
        says = np.array([weight for _, weight in flat])
        weights = np.repeat(_GROUP * says, sizes)
        weights[own] = says
        first = np.flatnonzero(text[:-1] == text[1:])  # words that another one follows
        left, right = own[first], own[first + 1]
        pairs = (hashes[left] * np.uint64(31) + hashes[right]) * np.uint64(_SPREAD)
        features = np.concatenate((hashes, pairs))
        weights = np.concatenate((weights, _PAIR * np.sqrt(weights[left] * weights[right])))
        whose = np.concatenate((np.repeat(text, sizes), text[first]))
        order = np.lexsort((features, whose))
        features, whose = features[order], whose[order]
        begins = np.flatnonzero(np.concatenate(([True], (features[1:] != features[:-1]) | (whose[1:] != whose[:-1]))))
        counts = np.diff(np.append(begins, len(features)))
        distinct = features[begins]
        signed = weights[order[begins]] * (1 + np.log(counts)) * np.where(distinct & np.uint64(1), 1.0, -1.0)
        places = ((distinct >> np.uint64(20)) % np.uint64(self.dimensions)).astype(np.int64) + whose[begins] * self.dimensions
        sums = np.bincount(places, signed, len(texts) * self.dimensions).astype(np.float64)
        return [unit(each) for each in sums.reshape(len(texts), -1)]


class AsWritten:
    """A substitute for an embedding that is not available, so that its stored vectors can be kept."""

    def __init__(self, name: str) -> None:
        """Take the `name` of the embedding, which ends in its number of dimensions."""
        tail = name.rpartition(":")[2]
        self.name, self.dimensions = name, int(tail) if tail.isdecimal() else 0

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Return nothing for no texts. Raises UsageError if there is a text."""
        if texts:
            raise UsageError(f"nothing here makes vectors of {self.name}: name the configuration that does with --config")
        return []


def words(text: str) -> dict[str, float]:
    """Return the distinct words of a text with their idf, in (0, 1]."""
    return {word: idf(word) for word in dict.fromkeys(_WORD.findall(text.casefold()))}


def vocabulary(text: str) -> frozenset[str]:
    """Return the distinct words of a text."""
    return frozenset(_WORD.findall(text.casefold()))


@functools.lru_cache(maxsize=50_000)
def idf(word: str) -> float:
    """Return the idf of a word, in (0, 1]: 1 if it is on none of the counted pages, near 0.2 if it is on nearly all."""
    pages, counts = _frequencies()
    return math.sqrt(math.log((pages + 1) / (counts[word] + 0.5)) / math.log((pages + 1) / 0.5)) if word in counts else 1.0


def unit(vector: npt.NDArray[np.floating]) -> Vector:
    """Return the vector scaled to length 1, or all zeros."""
    length = math.sqrt(vector @ vector)
    return (vector / length if length else vector).astype("float32")


@functools.lru_cache(maxsize=50_000)
def _word(word: str) -> tuple[bytes, float]:
    """Return hashes of 8 bytes of a word and of its groups of letters, the word's own first, and the word's weight."""
    import numpy as np

    marked, weight = f"<{word}>", idf(word)
    groups = dict.fromkeys(marked[i : i + size] for size in (3, 4) for i in range(len(marked) - size + 1))
    features = "\0c".join((f"w{word}", *groups)).encode("utf-8", "replace").split(b"\0")  # encoded at once: a state may have many new words
    sums = np.array([zlib.crc32(each) << 32 | zlib.adler32(each) for each in features], dtype=np.uint64)
    return (sums * np.uint64(_SPREAD)).tobytes(), weight


@functools.cache
def _frequencies() -> tuple[int, dict[str, int]]:
    """Return the number of counted pages, and for each word the number of pages that it is on."""
    text = (resources.files("exact.reflection") / "embed_words.txt").read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    counts = {word: int(count) for word, count in lines}
    return counts.pop("<pages>"), counts


_WEIGHTS = (0.55, 0.1, 0.35)
"""Weights of instruction, site and state in the similarity of two situations."""
KEYWORDS = 0.2
"""Weight of common words beside the cosine in the ranking of those that reach the threshold."""
_IDS = re.compile(r"^\s*\[[\w:.-]+\] ?", re.M)
_FIGURES = re.compile(r"\d+")

Texts = tuple[str, str, str]


def of_reflection(reflection: Reflection) -> Texts:
    return _texts(reflection.instruction, reflection.site, reflection.state)


def of_context(context: Context) -> Texts:
    return _texts(context.instruction, site(context), context.observation.text)


def vector(embedding: Embedding, texts: Texts) -> Vector:
    """Return the weighted sum of the parts' vectors, of length 1."""
    import numpy as np

    parts = embedding.embed_all(texts)
    return unit(np.sum([weight**0.5 * part for weight, part in zip(_WEIGHTS, parts, strict=True)], axis=0))


def told(reflection: Reflection) -> str:
    """Return the text of a reflection and its situation, for retrieval by words."""
    return " ".join((*of_reflection(reflection), reflection.text, reflection.action_label))


def keywords(asked: Mapping[str, float], held: Iterable[str]) -> list[float]:
    """Return for each line of distinct words the share of the query's words in it, weighted by rarity, in [0, 1]."""
    total = fsum(asked.values()) or 1.0
    return [fsum(map(asked.__getitem__, asked.keys() & each.split())) / total for each in held]  # a set has no order; exact sums need none


def about(reflection: Reflection) -> str:
    """Digest of the action and of whether it went worse: reflections that differ in it do not say the same."""
    said = f"{reflection.action_label}\n{reflection.surprise < 0}"
    return hashlib.blake2b(said.encode("utf-8", "replace"), digest_size=8).hexdigest()


def same_reflection(one: Reflection, other: Reflection) -> bool:
    """Return whether two reflections from similar situations have the same action, the same direction and nearly the same words.

    Numbers are ignored, because the same surprise is seldom measured twice alike.
    """
    if about(one) != about(other):
        return False
    left, right = (set(words(_FIGURES.sub("", each.text))) for each in (one, other))
    if not left or not right:
        return one.text == other.text
    return len(left & right) / len(left | right) >= 0.85


def _texts(instruction: str, site: str, state: str) -> Texts:
    return instruction, site, _IDS.sub("", shortened(state))
