"""Random draws keyed by their subject, never taken from a stream: neither the order of calls nor the process matters."""

from __future__ import annotations

import hashlib
from statistics import NormalDist

from exact.errors import UsageError

_STANDARD = NormalDist()


def uniform(seed: int, *about: object) -> float:
    """Return a draw from [0, 1) that depends on its arguments only."""
    return (_bits(seed, about) >> 11) / 2**53


def gaussian(seed: int, *about: object) -> float:
    """Return a draw from the standard normal distribution that depends on its arguments only."""
    return _STANDARD.inv_cdf(((_bits(seed, about) >> 12) + 0.5) / 2**52)


def index(count: int, seed: int, *about: object) -> int:
    """Return a draw from 0 .. count - 1 that depends on its arguments only."""
    return int(uniform(seed, *about) * count)


def probability(name: str, figure: float) -> float:
    """Return the figure, which must be a probability. Raises UsageError where it is not."""
    if not 0.0 <= figure <= 1.0:
        raise UsageError(f"{name} {figure:g} is not in [0, 1]")
    return figure


def _bits(seed: int, about: tuple[object, ...]) -> int:
    text = "\n".join((str(seed), *map(str, about)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
