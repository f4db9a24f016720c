"""Hashed tokens: words, character n-grams and pairs of words and properties, as rows of a table.

Gestures with the pointer: drags from points of elements, and the tokens of a drag.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Container, Iterator, Sequence

from exact.action import Action
from exact.agents.builtin.language.lexical import STOP_WORDS, words
from exact.agents.builtin.page.page import Item
from exact.observation import Box

TOKENS = 4096
"""Rows of the table of embeddings. Row 0 is for nothing."""
CROSSES = 32768
"""Rows of the table of pairs."""


@functools.lru_cache(maxsize=65536)
def token(text: str) -> int:
    """Return the row of a token, at least 1."""
    return 1 + zlib.crc32(text.encode("utf-8", "surrogatepass")) % (TOKENS - 1)


@functools.lru_cache(maxsize=65536)
def number(text: str) -> int:
    """Return the 32-bit number that a property has in pairs."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


@functools.lru_cache(maxsize=16384)
def word_tokens(text: str, prefix: str, most: int) -> tuple[int, ...]:
    """Return tokens of the first words of a text."""
    return tuple(token(prefix + word) for word in words(text)[:most])


@functools.lru_cache(maxsize=16384)
def trigrams(text: str, most: int) -> tuple[int, ...]:
    """Return tokens of the character trigrams of a short text, with marks at its ends."""
    marked = f"^{text.casefold()[: most + 1]}$"
    return tuple(token("3:" + marked[n : n + 3]) for n in range(len(marked) - 2))[:most]


@functools.lru_cache(maxsize=1024)
def said_words(instruction: str) -> tuple[str, ...]:
    """Return the different words of an instruction that say something, in order."""
    return tuple(dict.fromkeys(word for word in words(instruction) if word not in STOP_WORDS))


PUSH, PULL = 40.0, 20.0
"""Pixels by which an element is dragged, and by which its corner is."""
_INSET = 2.0
"""Pixels between a corner and the point at which it is taken."""
_NEAR = 6.0
"""Most pixels from a corner at which a drag counts as one of the corner."""
Drag = tuple[float, float, float, float]
"""Start and end of a drag."""


def boxed(items: Sequence[Item], roles: Container[str], most: int) -> Iterator[Box]:
    """Yield the boxes of the first elements of some roles that are drawn."""
    found = (item.element.box for item in items if item.role in roles and item.element.box and item.element.visible)
    yield from (box for _, box in zip(range(most), found, strict=False))


def pushes(box: Box) -> Iterator[Drag]:
    """Yield drags of an element to the left, right, up and down."""
    return _ways(box.x + box.width / 2, box.y + box.height / 2, PUSH)


def pulls(box: Box) -> Iterator[Drag]:
    """Yield drags of an element's lower right corner to the left, right, up and down."""
    return _ways(box.x + box.width - _INSET, box.y + box.height - _INSET, PULL)


def marks(box: Box) -> Drag:
    """Return the drag that selects the text in a box."""
    return box.x, box.y + _INSET, box.x + box.width + 1, box.y + box.height - _INSET


def drag_place(items: Sequence[Item], action: Action) -> tuple[Item | None, str, str]:
    """Return the smallest element at which a drag between points begins, the part of it, and the way: left, right, up, down or over it."""
    x, y, to_x, to_y = (float(value) for value in action.args)
    across = abs(to_x - x) >= abs(to_y - y)
    way = ("right" if to_x >= x else "left") if across else ("down" if to_y >= y else "up")
    under = [(item, box) for item in items if (box := item.element.box) and item.element.visible and _holds(box, x, y)]
    if not under:
        return None, "", way
    item, box = min(under, key=lambda each: each[1].width * each[1].height)
    if box.x + box.width - x <= _NEAR and box.y + box.height - y <= _NEAR:
        return item, "end", way
    if x - box.x <= _NEAR and y - box.y <= _NEAR:
        return item, "start", "over" if _holds(box, to_x, to_y) else way
    return item, "middle", way


def _ways(x: float, y: float, length: float) -> Iterator[Drag]:
    for dx, dy in ((-length, 0.0), (length, 0.0), (0.0, -length), (0.0, length)):
        yield x, y, max(x + dx, 0.0), max(y + dy, 0.0)


def _holds(box: Box, x: float, y: float) -> bool:
    return box.x - _INSET <= x <= box.x + box.width + _INSET and box.y - _INSET <= y <= box.y + box.height + _INSET
