"""Is a text what it should be? Rules of string_match, which program_html shares."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exact.benchmarks.webarena.format import Dialect

OR = " |OR| "
_TOLERANCE = 1e-8
_COMPARISON = re.compile(r"\s*(<=|>=|==|<|>)\s*(-?\d[\d,]*(?:\.\d+)?)\s*")
_TOKEN = re.compile(
    r"""
    n't\b | '(?:s|m|d|ll|re|ve)\b           # what a contraction leaves
    | \.{2,} | -- | [;@\#$%&?!"()\[\]{}<>*`]     # signs that stand alone
    | [:,](?!\d)
    | (?:(?!n't\b|'(?:s|m|d|ll|re|ve)\b|--|\.{2,})[^\s;@\#$%&?!"()\[\]{}<>*`:,] | [:,](?=\d))+
    """,
    re.X,
)


def tokens(text: str) -> list[str]:
    """Words and signs of a text, as the Penn Treebank parts them, without looking for sentences: only the last full stop is a token of
    its own. This takes the place of nltk's `word_tokenize`, which needs a model of sentences that is fetched at run time."""
    found = _TOKEN.findall(text)
    if found and len(found[-1]) > 1 and found[-1].endswith(".") and not found[-1].endswith(".."):
        found[-1:] = [found[-1][:-1], "."]
    return found


def cleaned(text: str, dialect: Dialect) -> str:
    """In lower case, without one pair of quotes around it."""
    text = text.strip() if dialect == "webarena" else text
    for quote in "'\"":
        if len(text) > 1 and text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def equal(wanted: str, text: str, dialect: Dialect) -> bool:
    """Whether both are the same once cleaned."""
    return cleaned(wanted, dialect) == cleaned(text, dialect)


def includes(wanted: str, text: str, dialect: Dialect, *, alone: bool = False) -> bool:
    """Whether `wanted` is in `text`. Short references are looked for as a token, so that `0` is not found in `10`: in VisualWebArena those
    of one token, in WebArena's answers those of one character that are the only reference (`alone`)."""
    wanted, text = cleaned(wanted, dialect), cleaned(text, dialect)
    token = len(tokens(wanted)) == 1 if dialect == "visualwebarena" else alone and len(wanted) == 1 and len(tokens(wanted)) == 1
    return wanted in (tokens(text) if token else text)


def any_included(wanted: str, text: str, dialect: Dialect, *, alone: bool = False) -> bool:
    """Whether one of the references between ` |OR| ` is in `text`."""
    return any(includes(each, text, dialect, alone=alone) for each in wanted.split(OR))


def one_of(wanted: Iterable[str], text: str, dialect: Dialect) -> bool:
    """Whether a reference is in `text` as a substring."""
    return any(cleaned(each, dialect) in cleaned(text, dialect) for each in wanted)


def number(text: str) -> float | None:
    """The number a text is, thousands in commas; None where it is none."""
    try:
        return float(text.replace(",", "").strip())
    except ValueError:
        return None


def fulfils(value: float, comparisons: str) -> bool:
    """Whether a number fulfils one of the comparisons between ` |OR| `. Raises ValueError for one that is none."""
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
