"""Hashed tokens: words, character n-grams and pairs of words and properties, as rows of a table."""

from __future__ import annotations

import functools
import zlib

from exact.agents.builtin.language.lexical import STOP_WORDS, words

TOKENS = 4096
"""Rows of the table of embeddings. Row 0 is for nothing."""
CROSSES = 32768
"""Rows of the table of pairs."""


@functools.lru_cache(maxsize=65536)
def token(text: str) -> int:
    """Return the row of a token, at least 1."""
    return 1 + zlib.crc32(text.encode("utf-8", "surrogatepass")) % (TOKENS - 1)


@functools.lru_cache(maxsize=65536)
def number(text: str) -> int:
    """Return the 32-bit number that a property has in pairs."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=16384)
def word_tokens(text: str, prefix: str, most: int) -> tuple[int, ...]:
    """Return tokens of the first words of a text."""
    return tuple(token(prefix + word) for word in words(text)[:most])


@functools.lru_cache(maxsize=16384)
def trigrams(text: str, most: int) -> tuple[int, ...]:
    """Return tokens of the character trigrams of a short text, with marks at its ends."""
    marked = f"^{text.casefold()[: most + 1]}$"
    return tuple(token("3:" + marked[n : n + 3]) for n in range(len(marked) - 2))[:most]


@functools.lru_cache(maxsize=1024)
def said_words(instruction: str) -> tuple[str, ...]:
    """Return the different words of an instruction that say something, in order."""
    return tuple(dict.fromkeys(word for word in words(instruction) if word not in STOP_WORDS))
