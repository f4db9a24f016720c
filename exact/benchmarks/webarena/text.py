"""The rules of string_match, which program_html shares, by which a text is the wanted one.

nltk's own `word_tokenize`, with its trained model of sentences, if the user has both: `models.strict_nltk`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from exact.benchmarks.webarena.format import OR, Dialect
from exact.errors import UsageError

Split = Callable[[str], list[str]]
"""Function that returns the words and signs of a text."""
_TOLERANCE = 1e-8
_NUMBER = re.compile(r"\s*([+-]?(?:[0-9][0-9,]*(?:\.[0-9]*)?|\.[0-9]+))\s*")
_COMPARISON = re.compile(r"\s*(<=|>=|==|<|>)\s*(-?\d[\d,]*(?:\.\d+)?)\s*")
_BREAK = re.compile(r"""[«»“”‘’„;@\#$%&?!"*()\[\]{}<>\u2012-\u2015]|``?|\.{2,}|--|''|[:,](?!\d)""")
"""Matches a sign that is a separate token."""
_OPENING = re.compile(r"(?<!\w)'(?!(?:re|ve|ll|m|t|s|d|n)\b)(?=\w)", re.I)
"""Matches a single quotation mark before a word, which is not the beginning of a clitic."""
_CLOSING = re.compile(r"""(?<=[^'\s])'(?=[ «“‘„`;@\#$%&?!\u2012-\u2015]|\.{2}|[:,](?!\d)|\.["'»”’\])}>]*\s*$)""")
"""Matches a single quotation mark after a word, if more of the sentence follows."""
_CLITICS = tuple(re.compile(rf"(?<=[^' ])(?:{each})(?= )", re.I) for each in ("'[smd]?", "'ll|'re|'ve|n't"))
"""Match the parts that a contraction or a closing quotation mark leaves at the end of a word, in the order in which they are split off."""
_LAST_STOP = re.compile(r"""(?<=[^.])\.(?=[\])}>"'»”’\s]*$)""")
_PAIRS = re.compile(
    r"\b(?:(can)(not)|(d)('ye)|(gim|lem)(me)|(gon)(na)|(got)(ta)|(more)('n))\b|\b(wan)(na)(?=\s)|(?<= )('t)(is|was)\b"
    r"|\b(whad)(dd)(ya)\b|\b(wha)(t)(cha)\b",
    re.I,
)
"""Matches two or three words that are written as one."""
_WORD = re.compile(r"\S+")
_ALONE = re.compile(r"(?:^|[^\w'’])[^\W\d_]\.$")


def tokens(text: str) -> list[str]:
    """Return words and signs of a text as the Penn Treebank splits them: a full stop that ends a sentence is a separate token.

    The words of a sentence are split as by nltk's `NLTKWordTokenizer`. A rule replaces nltk's model of sentences, which is fetched at run
    time. The rule ignores capitals, since references are compared in lower case. A full stop ends a sentence if the text ends or white
    space follows, after closing quotes and brackets; one after a letter that stands alone (`j. smith`, `e.g.`) does so only at the end.
    """
    return [word for sentence in sentences(text) for word in words(sentence)]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, by a rule."""
    found, begin = list[str](), 0
    for word in _WORD.finditer(text):
        bare = word[0].rstrip("])}>\"'»”’")
        if bare.endswith(".") and not bare.endswith("..") and not _ALONE.search(bare):
            found.append(text[begin : word.end()])
            begin = word.end()
    return [*found, text[begin:]]


def words(sentence: str) -> list[str]:
    """Return words and signs of one sentence, as nltk 3.8 to 3.10 split them; double quotation marks stay as they are."""
    split = _LAST_STOP.sub(" . ", _CLOSING.sub(" '", _OPENING.sub("' ", sentence)))
    split = " ".join(_BREAK.sub(r" \g<0> ", split).split())
    split = f" {split} "
    for clitic in _CLITICS:
        split = clitic.sub(r" \g<0>", split)
    return _PAIRS.sub(lambda match: f" {' '.join(filter(None, match.groups()))} ", split).split()


def cleaned(text: str, dialect: Dialect) -> str:
    """Return a text in lower case, without one pair of quotes around it."""
    text = text.strip() if dialect == "webarena" else text
    for quote in "'\"":
        if text.startswith(quote) and text.endswith(quote):
            return text[1:-1].lower()
    return text.lower()


def equal(wanted: str, text: str, dialect: Dialect) -> bool:
    """Return whether both are the same once cleaned."""
    return cleaned(wanted, dialect) == cleaned(text, dialect)


def includes(wanted: str, text: str, dialect: Dialect, *, alone: bool = False, split: Split = tokens) -> bool:
    """Return whether `wanted` is in `text`, of which `split` gives the tokens.

    Short references are compared as tokens, so that `0` is not found in `10`: in VisualWebArena those of one token, in WebArena's
    answers those of one character that are the only reference (`alone`). There a digit is also found in a number of its value: `0` in
    `$0.00`.
    """
    wanted, text = cleaned(wanted, dialect), cleaned(text, dialect)
    if dialect == "visualwebarena":
        return wanted in (split(text) if len(split(wanted)) == 1 else text)
    if not alone or len(wanted) != 1:
        return wanted in text
    found = split(text)
    return wanted in found or (wanted.isdigit() and float(wanted) in map(number, found))


def any_included(wanted: str, text: str, dialect: Dialect, *, alone: bool = False, split: Split = tokens) -> bool:
    """Return whether one of the references between ` |OR| ` is in `text`, of which `split` gives the tokens."""
    return any(includes(each, text, dialect, alone=alone, split=split) for each in wanted.split(OR))


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


def word_tokenize() -> Split:
    """Return nltk's function. Raises UsageError if nltk or its trained sentences are missing, with the way to get them."""
    try:
        import nltk
        from nltk.tokenize import word_tokenize
    except ImportError as error:
        raise UsageError(
            "models.strict_nltk needs nltk, which is not installed: run `pip install nltk`, then `python -m nltk.downloader punkt_tab`"
        ) from error
    try:
        word_tokenize("It is 3. So it is.")
    except LookupError as error:
        raise UsageError(
            f"models.strict_nltk needs trained sentences, which nltk {nltk.__version__} does not find: run `python -m nltk.downloader "
            "punkt_tab` (punkt before 3.8.2), or name a folder that has them in NLTK_DATA"
        ) from error
    return _split


def _split(text: str) -> list[str]:
    from nltk.tokenize import word_tokenize

    return [str(word) for word in word_tokenize(text)]
