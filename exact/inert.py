"""Text from outside without effect on a terminal or a page: control characters and direction marks are written out."""

from __future__ import annotations

import re

UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Matches a control character or a direction mark. Tabs and line ends are none."""


def inert(text: str, limit: int | None = None) -> str:
    """Return text with control characters and direction marks written out, cut at `limit` characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return UNSEEN.sub(lambda match: _written(match[0]), text.replace("\r\n", "\n"))


def _written(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else f"\\u{code:04x}"
