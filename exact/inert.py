"""Characters that are not seen, written out: control characters, direction marks, zero-width characters, variation selectors and tags.

This is the one set of them: terminals, reports, prompts and the check of reflections use it.
"""

from __future__ import annotations

import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_DIRECTIONS = "\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f"
_ZERO_WIDTH = "\u00ad\u034f\u180b-\u180f\u200b\u2060-\u2065\ufeff\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
_BLANK = "\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
_SELECTORS = "\ufe00-\ufe0e\U000e0000-\U000e0fff"
_HALVES = "\ud800-\udfff"
"""Halves of characters, which UTF-8 cannot write."""
_PICTURE = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
_JOINED = "\u0600-\u08ff\u0900-\u0dff\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u1800-\u18af"
"""Letters of scripts in which a joiner or a non-joiner between two letters changes how they look."""

UNSEEN = re.compile(
    f"[{_CONTROLS}{_DIRECTIONS}{_ZERO_WIDTH}{_BLANK}{_SELECTORS}{_HALVES}]"
    f"|\u200c(?!(?<=[{_JOINED}]\u200c)[{_JOINED}])"
    f"|\u200d(?!(?<=[{_PICTURE}\ufe0f]\u200d)[{_PICTURE}]|(?<=[{_JOINED}]\u200d)[{_JOINED}])"
    f"|(?<![{_PICTURE}0-9#*])\ufe0f"
)
"""Matches a character that is not seen. Tabs, line ends, and what joins or selects a visible emoji or letter are none."""


def inert(text: str, limit: int | None = None) -> str:
    """Return text with the characters that are not seen written out, cut at `limit` characters."""
    if limit is not None and len(text) > limit:
        text = text[: limit - 1].rstrip() + "…"
    return UNSEEN.sub(lambda match: _written(match[0]), text.replace("\r\n", "\n"))


def _written(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
