"""Random draws that are keyed, not taken from a stream: the same in whatever order results come, and after a resume."""

from __future__ import annotations

import hashlib
import random


def generator(*key: object) -> random.Random:
    """A generator for one key: the tree's seed, what is drawn, the node, the how-manieth draw there."""
    text = "\x1f".join(map(str, key)).encode()
    return random.Random(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))


def uniform(*key: object) -> float:
    """One number in [0, 1) for a key."""
    text = "\x1f".join(map(str, key)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") / 2**64
