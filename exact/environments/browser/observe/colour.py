"""Words for colours, which tell apart in text elements that have no text."""

from __future__ import annotations

import re

_WORDS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "red": (255, 0, 0),
    "green": (0, 128, 0),
    "lime": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "aqua": (0, 255, 255),
    "magenta": (255, 0, 255),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "pink": (255, 192, 203),
    "brown": (165, 42, 42),
    "olive": (128, 128, 0),
    "navy": (0, 0, 128),
    "teal": (0, 128, 128),
}
_RGB = re.compile(r"rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)")


def colour_word(css: str) -> str:
    """Return the nearest colour word to a computed CSS colour; empty where it is no colour or transparent.

    >>> colour_word("rgb(250, 5, 5)")
    'red'
    """
    match = _RGB.match(css)
    if not match or (match[4] is not None and float(match[4]) == 0):
        return ""
    given = tuple(int(match[i]) for i in (1, 2, 3))
    return min(_WORDS, key=lambda word: sum((a - b) ** 2 for a, b in zip(_WORDS[word], given, strict=True)))
