"""Views of a text: without escapes, tags between letters and look-alikes, or with some kinds of characters alone, and a map back."""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import accumulate, islice
from typing import Any, NamedTuple
from urllib.parse import unquote

_ESCAPE = re.compile(
    r"""
    [%&\\+](?:
        (?<=%)(?P<percent>[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)
        | (?<=&)(?P<entity>\#\d{1,7};? | \#[xX][0-9A-Fa-f]{1,6};? | [A-Za-z][A-Za-z0-9]{1,24};)
        | (?<=\\)(?:u(?P<unicode>[0-9A-Fa-f]{4}) | x(?P<byte>[0-9A-Fa-f]{2}) | (?P<plain>["'\\/]) | (?P<blank>[nrt]))
        | (?P<space>(?<=\w\+)(?=\w))
    )
    """,
    re.X,
)
"""Escapes. The first character alone decides the places to search."""
_UNSEEN = "\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe00-\ufe0f"
_GAP = re.compile(rf"""[<"{_UNSEEN}](?:(?<=<)[/!?A-Za-z][^<>]{{0,2000}}>|(?<=")[ ]*\n[ ]*\[\d+\][ ]\w+[ ]"|(?<=[{_UNSEEN}]))""")
"""Text that may stand unseen between two letters. The second alternative is the text between two elements of an observation."""
_OTHER, _OTHER_SIGNS = re.compile(r"[^\x00-\x7f]+"), re.compile(r"[^\x00-\x7f\w]+")
"""Characters beyond ASCII: all, and those that are neither letters nor digits."""
_LOOKALIKES = str.maketrans(
    "АВЕКМНОРСТУХаеорсухкіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαγινορυχκϲıɑɡøłđħ‐‑‒–—−‘’‚“”⁄∕∗ǃ",
    "ABEKMHOPCTYXaeopcyxkijshdqwABEZHIKMNOPTYXayivopuxkciagoldh------'',\"\"//*!",
)
"""Letters and signs that look like one of ASCII and are not equivalent to it."""
_MOST = 4
"""Layers of escapes that are undone."""


class _Folded(dict[int, str]):
    """Maps characters to ASCII ones that they look like, if there are some, without marks. Unseen characters become an empty text.

    Other signs become one that occurs nowhere, so that all characters of a folded text beyond ASCII are letters and digits.
    """

    def __missing__(self, code: int) -> str:
        if len(self) > 1 << 16:
            self.clear()
        plain = chr(code) if 0xAC00 <= code <= 0xD7A3 else unicodedata.normalize("NFKD", chr(code))  # Korean letters stay whole
        seen = "".join(each for each in plain if unicodedata.category(each) not in ("Mn", "Me", "Cf")).translate(_LOOKALIKES)
        self[code] = _OTHER_SIGNS.sub("\x7f", seen)
        if len(self[code]) != 1:
            _UNEVEN.add(chr(code))
        return self[code]


_UNEVEN = set[str]()
"""Characters that were folded to none or to several."""
_FOLDED = _Folded()


class TextView:
    """A text, and the position of each part of it in the text that it was made of."""

    def __init__(self, text: str, starts: list[int], origins: list[int], lengths: list[int], before: TextView | None) -> None:
        self.text, self._starts, self._origins, self._lengths, self._before = text, starts, origins, lengths, before
        self.is_folded: bool = before is not None and before.is_folded
        """Whether look-alikes were replaced."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the part of the first text that became the part from `start` to `end` of this one."""
        if self._before is None:
            return start, end
        return self._before.place(self._origin(start, 0), self._origin(end - 1, 1))

    def _origin(self, at: int, over: int) -> int:
        number = bisect_right(self._starts, at) - 1
        length = self._lengths[number]
        if length < 0:  # unchanged
            return self._origins[number] + at - self._starts[number] + over
        return self._origins[number] + over * length


def views(text: str) -> list[TextView]:
    """Return the views of a text: as it is, with each layer of escapes undone, and each of these without gaps; all of them folded too."""
    found = [TextView(text, [], [], [], None)]
    while len(found) <= _MOST and (inner := _made(found[-1], _escapes(found[-1].text))):
        found.append(inner)
    if not all(each.text.isascii() for each in found):
        layer: TextView | None = found[0]
        for _ in range(_MOST + 1):
            if layer is None:
                break
            found.append(layer := _fold_view(layer))
            layer = _made(layer, _escapes(layer.text))
    return [*found, *(bare for each in found if (bare := _made(each, _gaps(each.text))))]


def readings(text: str) -> Iterator[str]:
    """Yield the texts of the views, folded and without their places: much faster."""
    for _ in range(_MOST + 1):
        yield (text := fold(text))
        if (bare := _GAP.sub("", text)) != text:
            yield bare
        text, before = _ESCAPE.sub(_meaning, text), text
        if text == before:
            return


def fold(text: str) -> str:
    """Return a text with ASCII characters in place of those that look like them, and without marks and unseen characters."""
    if text.isascii():
        return text
    if len(text) < _LONG:
        return _OTHER.sub(lambda run: run[0].translate(_FOLDED), text)
    import numpy as np

    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    table = _table(tuple(np.flatnonzero(np.bincount(codes >> 8)).tolist()))
    folded = table[codes]
    if (folded == _SEVERAL).any():
        several = np.unique(codes[folded == _SEVERAL]).tolist()
        if len(several) > _FEW:
            return text.translate(_FOLDED)
        for each in several:
            text = text.replace(chr(each), _FOLDED[each])
        return fold(text)
    return str(folded[folded != _NONE].tobytes(), "utf-32-le", "surrogatepass")


_LONG, _FEW = 1000, 50
_SEVERAL, _NONE = 0x110000, 0x110001
_BLOCKS = set[int]()


@cache
def _codes() -> Any:
    """Return an array in which the code of each character's fold will stand."""
    import numpy as np

    return np.zeros(0x110000, np.uint32)


def _table(blocks: tuple[int, ...]) -> Any:
    """Return the codes of folds, filled in for blocks of 256 characters."""
    table = _codes()
    for block in {*blocks} - _BLOCKS:
        for code in range(block << 8, (block + 1) << 8):
            shown = _FOLDED[code]
            table[code] = ord(shown) if len(shown) == 1 else _SEVERAL if shown else _NONE
        _BLOCKS.add(block)
    return table


def lowered(text: str) -> str:
    """Return a text in lower case. A letter whose lower case is two stays, so that places are the same."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(each if len(low := each.lower()) > 1 else low for each in text)


class CharacterKind(NamedTuple):
    """A kind of characters."""

    dropped: bytes
    """Bytes of all others. Beyond ASCII, they are dropped if they are neither letters nor digits."""
    each: re.Pattern[str]
    """Matches one character of the kind."""


LETTERS = CharacterKind(bytes(each for each in range(128) if not chr(each).isalnum()), re.compile(r"[^\W_]"))
HEX = CharacterKind(bytes(each for each in range(256) if each not in b"0123456789abcdef"), re.compile("[0-9a-f]"))
DIGITS = CharacterKind(bytes(each for each in range(256) if each not in b"0123456789"), re.compile("[0-9]"))
_BLOCK = 128


def only(text: str, kind: CharacterKind, *, is_folded: bool = False) -> str:
    """Return the characters of a kind in a text."""
    if kind is LETTERS and not is_folded and not text.isascii():
        text = _OTHER_SIGNS.sub("", text)
    return text.encode("utf-8", "surrogatepass").translate(None, kind.dropped).decode("utf-8", "surrogatepass")


class Places:
    """The places of the characters of a kind in a text."""

    def __init__(self, text: str, kind: CharacterKind) -> None:
        self._text, self._kind = text, kind

    @cached_property
    def _before(self) -> list[int]:
        """Number of characters of the kind before each block."""
        blocks = (self._text[at : at + _BLOCK] for at in range(0, len(self._text), _BLOCK))
        return [0, *accumulate(len(only(each, self._kind)) for each in blocks)]

    def __getitem__(self, number: int) -> int:
        block = bisect_right(self._before, number) - 1
        return next(islice(self._kind.each.finditer(self._text, block * _BLOCK), number - self._before[block], None)).start()


_Change = tuple[int, int, str]
"""A part of a text, from start to end, and the text in its place."""


def _escapes(text: str) -> Iterator[_Change]:
    return ((each.start(), each.end(), _meaning(each)) for each in _ESCAPE.finditer(text))


def _gaps(text: str) -> Iterator[_Change]:
    return ((each.start(), each.end(), "") for each in _GAP.finditer(text))


def _folds(text: str) -> Iterator[_Change]:
    """Yield runs of characters that are folded to one each, and others one by one."""
    for run in _OTHER.finditer(text):
        if (shown := run[0].translate(_FOLDED)) != run[0] and _UNEVEN.isdisjoint(run[0]):
            yield run.start(), run.end(), shown
        elif shown != run[0]:
            yield from ((at, at + 1, _FOLDED[ord(each)]) for at, each in enumerate(run[0], run.start()))


def _fold_view(view: TextView) -> TextView:
    found = _made(view, _folds(view.text)) or TextView(view.text, [0], [0], [-1], view)
    found.is_folded = True
    return found


def _made(view: TextView, changes: Iterable[_Change]) -> TextView | None:
    """Return a view with changes; None if there are none."""
    parts, starts, origins, lengths, at, size = list[str](), list[int](), list[int](), list[int](), 0, 0

    def add(part: str, origin: int, length: int) -> None:
        nonlocal size
        if part:
            parts.append(part)
            starts.append(size)
            origins.append(origin)
            lengths.append(-1 if length == len(part) else length)
            size += len(part)

    for start, end, shown in changes:
        add(view.text[at:start], at, start - at)
        add(shown, start, end - start)
        at = end
    if not at:
        return None  # no change is empty
    add(view.text[at:], at, len(view.text) - at)
    return TextView("".join(parts), starts, origins, lengths, view)


def _meaning(escape: re.Match[str]) -> str:
    match escape.lastgroup:
        case "percent":
            return unquote(escape[0], errors="replace")
        case "entity":
            return html.unescape(escape[0] if escape[0].endswith(";") else escape[0] + ";")
        case "unicode" | "byte":
            return chr(int(escape[escape.lastgroup], 16))
        case "plain":
            return escape["plain"]
        case "space" | "blank":
            return " "
    return ""
