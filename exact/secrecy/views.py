"""Views of a text: the text once escapes are undone and tags between letters are dropped, with a map back to the original."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
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
_APART = re.compile(r"[\W_][^\W_](?:[\W_]{1,16}[^\W_]){2,}")
"""Letters and digits that stand alone, with other characters between them."""
_BETWEEN = re.compile(r"[\W_]+")
_MOST = 4
"""Layers of escapes that are undone."""


class TextView:
    """A text, and the position of each part of it in the text that it was made of."""

    def __init__(self, text: str, starts: list[int], origins: list[int], lengths: list[int], before: TextView | None) -> None:
        self.text, self._starts, self._origins, self._lengths, self._before = text, starts, origins, lengths, before

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
    """Return the views of a text: as it is, with each layer of escapes undone, and each of these without gaps."""
    found = [TextView(text, [], [], [], None)]
    while len(found) <= _MOST and (inner := _made(found[-1], _ESCAPE.finditer(found[-1].text))):
        found.append(inner)
    return [*found, *(bare for each in found if (bare := _made(each, _GAP.finditer(each.text))))]


def readings(text: str) -> Iterator[str]:
    """Yield the texts of the views, without their places: much faster."""
    for _ in range(_MOST + 1):
        yield text
        if (bare := _GAP.sub("", text)) != text:
            yield bare
        text, before = _ESCAPE.sub(_meaning, text), text
        if text == before:
            return


def joined(text: str) -> str:
    """Return a text in which letters that are set apart, as in `p a s s` or `p.a.s.s`, follow each other directly."""
    parts, at = list[str](), 0
    for gap in _between(text):
        parts.append(text[at : gap.start()])
        at = gap.end()
    return "".join((*parts, text[at:])) if parts else ""


def joined_views(text: str) -> Iterator[TextView]:
    """Yield the views of a text in which letters that are set apart follow each other. There are none if no letters are set apart."""
    return (made for each in views(text) if (made := _made(each, _between(each.text))))


def _between(text: str) -> Iterator[re.Match[str]]:
    """Yield the text between letters that are set apart."""
    for run in _APART.finditer(text):
        start = run.start()
        while start and _BETWEEN.match(text, start - 1, start):
            start -= 1
        yield from _BETWEEN.finditer(text, start, run.end())


def squeezed(text: str) -> str:
    """Return the letters and digits of a text."""
    return _BETWEEN.sub("", text)


def _made(view: TextView, escapes: Iterable[re.Match[str]]) -> TextView | None:
    """Return a view in which escapes are replaced by their meaning; None if there are none."""
    parts, starts, origins, lengths, at, size = list[str](), list[int](), list[int](), list[int](), 0, 0

    def add(part: str, origin: int, length: int) -> None:
        nonlocal size
        if part:
            parts.append(part)
            starts.append(size)
            origins.append(origin)
            lengths.append(length)
            size += len(part)

    for escape in escapes:
        add(view.text[at : escape.start()], at, -1)
        add(_meaning(escape), escape.start(), escape.end() - escape.start())
        at = escape.end()
    if not at:
        return None  # no escape is empty
    add(view.text[at:], at, -1)
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
