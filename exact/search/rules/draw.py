"""Keyed random draws: the same in whatever order results arrive, and after a resume."""

from __future__ import annotations

import hashlib
import random


def generator(*key: object) -> random.Random:
    """Return a random generator for a key: the tree's seed, the purpose, the node, the index of the draw."""
    text = "\x1f".join(map(str, key)).encode()
    return random.Random(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))


def uniform(*key: object) -> float:
    """Return a number in [0, 1) for a key."""
    text = "\x1f".join(map(str, key)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
