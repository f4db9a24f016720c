"""Fences that separate text from outside from a prompt's instructions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from exact.models.tokens import rough
from exact.text import inert, mark_of

MAX_CHARACTERS = 24_000
"""Maximum characters of a fenced text. A longer text is cut at its end, with a note."""

_BRACKETS = str.maketrans({**dict.fromkeys("⟦〚⟬⦗【", "["), **dict.fromkeys("⟧〛⟭⦘】", "]")})
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_CUTS: ContextVar[list[str] | None] = ContextVar("cuts", default=None)


@contextmanager
def record_cuts() -> Iterator[list[str]]:
    """Record, inside the context, the cuts: a list of notes with the number of characters and the text that they belonged to."""
    found: list[str] = []
    token = _CUTS.set(found)
    try:
        yield found
    finally:
        _CUTS.reset(token)


def fence(text: str, label: str, limit: int = MAX_CHARACTERS) -> str:
    """Return the text between `⟦label mark⟧` and `⟦/label mark⟧`.

    The text cannot close its own fence: the fence's brackets, and similar ones, become plain brackets inside, and the mark is a digest of
    the text under the attempt's key. Invisible characters are written out. Half a surrogate pair, which a request cannot encode, becomes
    U+FFFD.
    """
    body = _SURROGATE.sub("�", shorten(inert(text.strip("\n")), limit, label).translate(_BRACKETS))
    mark = mark_of(body, label)
    return f"⟦{label} {mark}⟧\n{body}\n⟦/{label} {mark}⟧"


def shorten(text: str, limit: int, label: str = "text") -> str:
    """Return at most `limit` characters of a text, with the number of characters left out."""
    if len(text) <= limit:
        return text
    _note_cut(len(text) - limit, f"the {label}")
    return f"{text[:limit]}\n(... {len(text) - limit} characters left out)"


def one_line(text: str, limit: int = 200) -> str:
    """Return the text as one line of at most `limit` characters."""
    joined = " ".join(text.split())
    if len(joined) <= limit:
        return joined
    _note_cut(len(joined) - limit + 1, f"a line of {len(joined)}")
    return joined[: limit - 1] + "…"


def first_words(text: str, tokens: int) -> str:
    """Return the first words of a text, as one line of at most `tokens` tokens by a rough count, with a mark if there were more."""
    words, mark = text.split(), ""
    while words and (count := rough(" ".join(words) + mark)) > tokens:
        words, mark = words[: min(len(words) - 1, len(words) * tokens // count)], "…"
    if mark:
        _note_cut(len(" ".join(text.split()[len(words) :])), "a reflection")
    return " ".join(words) + mark


def _note_cut(characters: int, what: str) -> None:
    noted = _CUTS.get()
    if noted is not None:
        noted.append(f"{characters} characters of {what}")
