"""Similarity of words: the overlap of a phrase of an instruction with the label of an element.

Part of the built-in agent, which is not a language model: no function here knows the meaning of a word.
"""

from __future__ import annotations

import functools
import re


def vocabulary(spelled: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(spelled.split())


STOP_WORDS = vocabulary(
    "a an and any are as at be below by do each following for from have if in into is it its of on one onto or so that the their them then "
    "there these this those to up using when which with you your"
)
"""Words that say little about which element is meant."""

_WORD = re.compile(r"[@#$]?\w+(?:[.:/'’-]\w+)*")
_GENITIVE = re.compile(r"['’]s$")
_ENDINGS = ("ings", "ing", "ies", "ed", "es", "s", "ly")
_SYNONYMS = ({"x", "×", "✕", "✖", "close"}, {"ok", "okay"}, {"login", "signin", "log in", "sign in"}, {"trash", "delete", "remove"})


@functools.lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """Return the words of a text in lower case, in order.

    Numbers, prices, dates and @names stay whole. Genitive endings are removed: `Ann's` becomes `ann`.
    """
    return tuple(strip_genitive(word) for word in _WORD.findall(text.casefold()))


def strip_genitive(word: str) -> str:
    """Return the word without a genitive ending."""
    return _GENITIVE.sub("", word) or word


@functools.lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return the word without a common English ending. At least three letters remain."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@functools.lru_cache(maxsize=8192)
def normalise(text: str) -> str:
    """Return the text in lower case with single spaces, without punctuation at its ends unless there is nothing else."""
    plain = " ".join(text.casefold().split())
    return plain.strip(" .,;:!?\"'“”()[]") or plain


@functools.lru_cache(maxsize=8192)
def alphanumeric(text: str) -> str:
    """Return only the letters and digits of a text, in lower case."""
    return re.sub(r"[\W_]+", "", text.casefold())


@functools.lru_cache(maxsize=65536)
def similarity(phrase: str, label: str) -> float:
    """Return how well a label fits a phrase, in [0, 1]: 1 if equal, above 0.9 if equal except for punctuation."""
    wanted, given = normalise(phrase), normalise(label)
    if not wanted or not given:
        return 0.0
    if wanted == given:
        return 1.0 if " ".join(phrase.split()) == " ".join(label.split()) else 0.98
    if alphanumeric(phrase) and alphanumeric(phrase) == alphanumeric(label):
        return 0.94
    if any(wanted in same and given in same for same in _SYNONYMS):
        return 0.9
    return 0.88 * _overlap(words(phrase), words(label))


def _overlap(wanted: tuple[str, ...], given: tuple[str, ...]) -> float:
    """Return the weighted F-measure of the common words, in [0, 1]."""
    if not wanted or not given:
        return 0.0
    rest, common = list(given), 0.0
    for word in wanted:
        found = max(rest, key=lambda other: word_similarity(word, other), default="")
        likeness = word_similarity(word, found) if found else 0.0
        if likeness:
            rest.remove(found)
            common += likeness * _weight(word)
    return 2 * common / (sum(map(_weight, wanted)) + sum(map(_weight, given)))


@functools.lru_cache(maxsize=65536)
def word_similarity(one: str, other: str) -> float:
    """Return the similarity of two words, in [0, 1].

    1 if equal, 0.85 if only a common ending differs, 0.5 if the longer word begins with the shorter.
    """
    if one == other:
        return 1.0
    if one.strip("@#$") == other.strip("@#$"):
        return 0.9
    if stem(one) == stem(other):
        return 0.85
    shorter, longer = sorted((one, other), key=len)
    return 0.5 if len(shorter) >= 4 and longer.startswith(shorter) else 0.0


def _weight(word: str) -> float:
    return 0.15 if word in STOP_WORDS else 1.0
