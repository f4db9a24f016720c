"""Views of a text: what it says once escapes are undone and tags between letters are dropped, with the way back to the text."""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Iterator
from urllib.parse import unquote

_ESCAPE = re.compile(
    r"""
    [%&\\+](?:
        (?<=%)(?P<percent>[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*)
        | (?<=&)(?P<entity>\#\d{1,7};? | \#[xX][0-9A-Fa-f]{1,6};? | [A-Za-z][A-Za-z0-9]{1,24};)
        | (?<=\\)(?:u(?P<unicode>[0-9A-Fa-f]{4}) | x(?P<byte>[0-9A-Fa-f]{2}) | (?P<plain>["'\\/]))
        | (?P<space>(?<=\w\+)(?=\w))
    )
    """,
    re.X,
)
"""Escapes. The first character alone decides where to look."""
_UNSEEN = "\u200b-\u200f\u2060-\u2064\ufeff\u00ad\ufe00-\ufe0f"
_GAP = re.compile(rf"""[<"{_UNSEEN}](?:(?<=<)[/!?A-Za-z][^<>]{{0,2000}}>|(?<=")[ ]*\n[ ]*\[\d+\][ ]\w+[ ]"|(?<=[{_UNSEEN}]))""")
"""What may stand between two letters without being seen. The second one is what is between two elements of an observation."""
_MOST = 4
"""Layers of escapes that are undone."""


class TextView:
    """A text, and where each part of it stands in the text that it was made of."""

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
    while len(found) <= _MOST and (inner := _made(found[-1], _ESCAPE)):
        found.append(inner)
    return [*found, *(bare for each in found if (bare := _made(each, _GAP)))]


def readings(text: str) -> Iterator[str]:
    """Yield the texts of the views, without their places: much faster."""
    for _ in range(_MOST + 1):
        yield text
        if (bare := _GAP.sub("", text)) != text:
            yield bare
        text, before = _ESCAPE.sub(_meaning, text), text
        if text == before:
            return


def _made(view: TextView, pattern: re.Pattern[str]) -> TextView | None:
    """Return a view in which what the pattern matches is replaced by its meaning; None where it matches nothing."""
    parts, starts, origins, lengths, at, size = list[str](), list[int](), list[int](), list[int](), 0, 0

    def add(part: str, origin: int, length: int) -> None:
        nonlocal size
        if part:
            parts.append(part)
            starts.append(size)
            origins.append(origin)
            lengths.append(length)
            size += len(part)

    for escape in pattern.finditer(view.text):
        add(view.text[at : escape.start()], at, -1)
        add(_meaning(escape), escape.start(), escape.end() - escape.start())
        at = escape.end()
    if not at:
        return None  # no match is empty
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
        case "space":
            return " "
    return ""
