"""Comparison of texts of a page: which words repeat which."""

from __future__ import annotations

from collections.abc import Sequence

_EDGES = ".,:;!?()[]\"'"


def flat(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def has_words(text: str) -> bool:
    """Return whether a text holds a letter or a digit, so that it is no mere sign."""
    return any(each.isalnum() for each in text)


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(each for each in text if each.isalnum())


def is_run(text: str, of: str) -> bool:
    """Return whether the words of a text follow one another in another text.

    >>> is_run("400", "Account 4400"), is_run("read more", "Please read more.")
    (False, True)
    """
    return _find(_words(text), _words(of)) >= 0


def repeated(texts: Sequence[str], name: str, value: str = "") -> list[bool]:
    """Return which of the texts in an element repeat its name or value, each word of which is repeated once.

    Numbers alone repeat a name only as a whole: in "Account 400", a text "400" may be another number.

    >>> repeated(["Send", "now"], "Send now"), repeated(["Total", "400"], "Total of 400"), repeated(["1"], "Item 10")
    ([True, True], [True, False], [False])
    """
    if texts and letters("".join(texts)) == letters(name) and has_words(name):
        return [True] * len(texts)
    named, held, found = _words(name), _words(value), list[bool]()
    for text in texts:
        words = _words(text)
        counts = any(each.isalpha() for each in text) or words == _words(name)
        found.append(text in (name, value) or (counts and _take(words, named)) or _take(words, held))
    return found


def _take(words: list[str], of: list[str]) -> bool:
    """Remove the words from the others, if they follow one another there. Return whether they do."""
    at = _find(words, of)
    if at >= 0:
        of[at : at + len(words)] = [""]
    return at >= 0


def _find(words: list[str], of: list[str]) -> int:
    """Return where the words follow one another in others; -1 if nowhere."""
    if not words:
        return -1
    return next((i for i in range(len(of) - len(words) + 1) if of[i : i + len(words)] == words), -1)


def _words(text: str) -> list[str]:
    return [each.strip(_EDGES) or each for each in text.split()]
