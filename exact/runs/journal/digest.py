"""Digests that distinguish states which look equal: of the writes on their path, and of what moved."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from exact.environments.base import SideEffect

_MOVED = "~"
"""First character of a digest of what moved; the other digests are of writes."""


def beyond(before: str, effects: Sequence[SideEffect], info: Mapping[str, str]) -> str:
    """Return what tells states apart that look equal: sorted digests of the writes on the path, each address once, and of what moved."""
    writes = {f"{e.method} {e.url.partition('?')[0]}" for e in effects if e.is_write}
    digests = {hashlib.blake2b(each.encode(), digest_size=4).hexdigest() for each in writes}
    if moved := info.get("moved"):
        digests.add(_MOVED + hashlib.blake2b(moved.encode(), digest_size=4).hexdigest())
    return " ".join(sorted({*before.split(), *digests}))


def written(beyond: str) -> set[str]:
    """Return the digests in `beyond` that are of writes."""
    return {digest for digest in beyond.split() if not digest.startswith(_MOVED)}
