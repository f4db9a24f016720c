"""Marks of the fences in prompts, which a page can neither guess nor forge."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_FENCED = re.compile(r"⟦(?P<label>[\w ]+) (?P<mark>[0-9a-f]{8})⟧\n(?P<body>[^⟦⟧]*)\n⟦/(?P=label) (?P=mark)⟧")
_GROWING = frozenset({"steps"})
"""Labels of fences whose text grows at its end from prompt to prompt of an attempt."""
_KEY: ContextVar[bytes] = ContextVar("fence key", default=b"")


@contextmanager
def use_fence_key(key: str) -> Iterator[None]:
    """Draw, inside the context, all marks with a secret key of hex digits. Empty: from the text alone.

    A run draws a key for each attempt and journals it. A page cannot know a mark before it stands in a prompt, nor make another text with a
    mark that it has learned. Within an attempt equal texts have equal marks, so that servers find prompts that begin alike in their caches.
    The mark of a text that grows is drawn from its label and its first line, so that its beginning stays the same.
    """
    token = _KEY.set(bytes.fromhex(key))
    try:
        yield
    finally:
        _KEY.reset(token)


def mark_of(text: str, label: str = "") -> str:
    """Return the eight hex digits that mark a fenced text: its digest under the key in use."""
    key, (first, _, _) = _KEY.get(), text.partition("\n")
    return _mark(f"{label}\n{first}" if key and label in _GROWING else text, key)


def without_key(prompt: str) -> str:
    """Return a prompt with the marks that its fences have without a key: equal questions of two attempts become equal texts."""

    def written_again(match: re.Match[str]) -> str:
        label, body = match["label"], match["body"]
        mark = _mark(body, b"")
        return f"⟦{label} {mark}⟧\n{body}\n⟦/{label} {mark}⟧"

    return _FENCED.sub(written_again, prompt)


def _mark(text: str, key: bytes) -> str:
    data = text.encode()
    return (hashlib.blake2b(data, key=key).hexdigest() if key else hashlib.sha256(data).hexdigest())[:8]
