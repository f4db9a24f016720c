"""The rules of string_match, which program_html shares, by which a text is the wanted one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exact.benchmarks.webarena.format import OR, Dialect

_TOLERANCE = 1e-8
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+))\s*")
_COMPARISON = re.compile(r"\s*(<=|>=|==|<|>)\s*(-?\d[\d,]*(?:\.\d+)?)\s*")
_TOKEN = re.compile(
    r"""
    n't\b | '(?:s|m|d|ll|re|ve)\b           # what a contraction leaves
    | \.{2,} | -- | '' | `+ | [;@\#$%&?!"()\[\]{}<>*«»“”‘’„]     # signs that stand alone
    | [:,](?!\d)
    | (?:(?!n't\b|'(?:s|m|d|ll|re|ve)\b|--|''|\.{2,})[^\s;@\#$%&?!"()\[\]{}<>*«»“”‘’„`:,] | [:,](?=\d))+
    """,
    re.X,
)


_CLOSED = re.compile(r"""[\])}>"'»”’\s]*$|[\])}>"'»”’]*(?=\s)""")
_ALONE = re.compile(r"(?<![\w'’])[^\W\d_]\.$")


def tokens(text: str) -> list[str]:
    """Return words and signs of a text as the Penn Treebank splits them: a full stop that ends a sentence is a token of its own.

    A rule replaces nltk's `word_tokenize`, whose sentence model is fetched at run time. The rule ignores capitals, since references are
    compared in lower case. A full stop ends a sentence where the text ends or white space follows, after closing quotes and brackets;
    one after a letter that stands alone (`j. smith`, `e.g.`) does so only at the end of the text.
    """
    found = list[str]()
    for match in _TOKEN.finditer(text):
        word = match[0]
        ends = len(word) > 1 and word.endswith(".") and not word.endswith("..")
        closed = _CLOSED.match(text, match.end()) if ends else None
        if closed and (closed.end() == len(text) or not _ALONE.search(word)):
            found += (word[:-1], ".")
        else:
            found.append(word)
    return found


def cleaned(text: str, dialect: Dialect) -> str:
    """Return a text in lower case, without one pair of quotes around it."""
    text = text.strip() if dialect == "webarena" else text
    for quote in "'\"":
        if len(text) > 1 and text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def equal(wanted: str, text: str, dialect: Dialect) -> bool:
    """Return whether both are the same once cleaned."""
    return cleaned(wanted, dialect) == cleaned(text, dialect)


def includes(wanted: str, text: str, dialect: Dialect, *, alone: bool = False) -> bool:
    """Return whether `wanted` is in `text`.

    Short references are compared as tokens, so that `0` is not found in `10`: in VisualWebArena those of one token, in WebArena's
    answers those of one character that are the only reference (`alone`).
    """
    wanted, text = cleaned(wanted, dialect), cleaned(text, dialect)
    token = len(tokens(wanted)) == 1 if dialect == "visualwebarena" else alone and len(wanted) == 1 and len(tokens(wanted)) == 1
    return wanted in (tokens(text) if token else text)


def any_included(wanted: str, text: str, dialect: Dialect, *, alone: bool = False) -> bool:
    """Return whether one of the references between ` |OR| ` is in `text`."""
    return any(includes(each, text, dialect, alone=alone) for each in wanted.split(OR))


def one_of(wanted: Iterable[str], text: str, dialect: Dialect) -> bool:
    """Return whether a reference is in `text` as a substring."""
    return any(cleaned(each, dialect) in cleaned(text, dialect) for each in wanted)


def number(text: str) -> float | None:
    """Return the number that a text is: digits, thousands in commas, a decimal point; None for other texts, such as `inf` and `1e9`."""
    match = _NUMBER.fullmatch(text)
    return float(match[1].replace(",", "")) if match else None


def written(value: float) -> str:
    """Return a number as a text: a whole one with all its digits, another with the 15 that a double keeps.

    >>> written(1234567.0), written(0.1 + 0.2)
    ('1234567', '0.3')
    """
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.15g}"


def fulfils(value: float, comparisons: str) -> bool:
    """Return whether a number fulfils one of the comparisons between ` |OR| `. Raises ValueError for an invalid one."""
    return any(_fulfils(value, each) for each in comparisons.split(OR))


def _fulfils(value: float, comparison: str) -> bool:
    match = _COMPARISON.fullmatch(comparison)
    if not match:
        raise ValueError(f"{comparison!r} is no comparison: write >= 12, < 5 or == 3")
    bound = float(match[2].replace(",", ""))
    same = abs(value - bound) <= _TOLERANCE
    return {"==": same, "<=": value < bound or same, ">=": value > bound or same, "<": value < bound and not same}.get(
        match[1], value > bound and not same
    )
