"""Letters in disguise: invisible, spaced, foreign, wide or encoded ones. None of these rules knows a language."""

from __future__ import annotations

import re
import unicodedata

from exact.reflection.hygiene.language import QUOTED
from exact.text import UNSEEN

_SPACED = re.compile(r"(?<![^\W\d_])(?:[^\W\d_][^\w\n,;:()]{1,6}){3,}[^\W\d_](?![^\W\d_])")
_LATIN, _ALIKE = "A-Za-z\u00c0-\u024f", "\u0370-\u03ff\u0400-\u052f\u0530-\u058f\u13a0-\u13ff"
_MIXED = re.compile(f"[{_LATIN}][{_ALIKE}]|[{_ALIKE}][{_LATIN}]")
_LEET_INSIDE = re.compile(r"(?<![\w+/.-])[a-zA-Z]+[0134578@$]+[a-zA-Z]+[\w@$]*(?![\w+/-])")
_ENCODED = re.compile(
    r"(?<![\w/+.-])(?=[A-Za-z0-9+/]*[a-z])(?=[A-Za-z0-9+/]*[A-Z])(?:(?=[A-Za-z0-9+/]*\d)[A-Za-z0-9+/]{20,}|[A-Za-z0-9+/]{16,}(?==))={0,2}"
    r"|(?<!\w)(?:0x)?(?:[0-9a-fA-F]{2}[ :]?){16,}(?!\w)|(?:\\[ux][0-9a-fA-F]{2,4}\s?){3,}|(?:%[0-9A-Fa-f]{2}){3,}|(?:&#x?[0-9a-fA-F]+;){2,}"
    r"|(?<!\w)(?:[01]{8}\s+){3,}|(?:[.-]{1,5}[ /]+){6,}"
)
_BROKEN = re.compile(r"(?<![\w-])[^\W\d_]{1,5}(?:[-·.][^\W\d_]{1,5}){1,}(?![\w-])")
_LATIN_RUN = re.compile(r"(?<![\w])[a-z]{2,}(?: [a-z]{1,}){3,}(?!\w)")


def disguises(text: str) -> list[str]:
    """Return how a text hides its letters; empty if it does not."""
    bare = QUOTED.sub('""', text)
    found = []
    if UNSEEN.search(text):
        found.append("hides characters")
    if len(_odd_letters(text)) >= 3 or any(map(_mixes, re.findall(r"\w+", text))):
        found.append("mixes letters of several scripts")
    if _SPACED.search(bare):
        found.append("spaces letters out")
    if len(_LEET_INSIDE.findall(bare)) >= 2:
        found.append("writes digits for letters")
    if _ENCODED.search(text):
        found.append("holds encoded text")
    return found


def plain(text: str) -> str:
    """Return a text with its characters in their usual form, without the invisible ones."""
    return UNSEEN.sub("", unicodedata.normalize("NFKC", text))


def joined(text: str) -> str:
    """Return a text whose words are not broken by hyphens: `de-le-te` as `delete`."""
    return _BROKEN.sub(lambda match: re.sub(r"[-·.]", "", match[0]), text)


def foreign_run(text: str) -> str:
    """Return the first run of four Latin words in a text of another script, outside quotes; empty if there is none."""
    match = _LATIN_RUN.search(QUOTED.sub('""', text))
    return match[0] if match else ""


def _odd_letters(text: str) -> list[str]:
    """Return letters that look like other ones: wide, mathematical or enclosed ones."""
    return [c for c in text if ord(c) > 0x2000 and c.isalpha() and unicodedata.normalize("NFKC", c).isascii()]


def _mixes(word: str) -> bool:
    return bool(_MIXED.search(word))
