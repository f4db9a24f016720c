"""Comparison of the state that was reached with the state that was wanted.

A fingerprint identifies a state by its parts that are not volatile. Whether two states of one fingerprint are equal in their volatile
parts too is told by the digest that an observation has beside it. A journal stores the fingerprint alone.
"""

from __future__ import annotations

from typing import Literal, get_args

from exact.observation import Observation

Match = Literal["exact", "equivalent", "drifted"]
"""`exact`: the same state. `equivalent`: equal except for volatile parts, or not known to be more. `drifted`: another state."""

MATCHES: tuple[Match, ...] = get_args(Match)
"""All values of Match, from best to worst."""

_SEPARATOR = "~"


def state_key(observation: Observation | None) -> str:
    """Return the fingerprint of an observation, with the digest of its volatile parts if it has any. Empty for None."""
    if observation is None:
        return ""
    return observation.fingerprint + (f"{_SEPARATOR}{observation.volatile}" if observation.volatile else "")


def compare_states(wanted: str, reached: str) -> Match:
    """Compare two states by their keys. A bare fingerprint stands for a state whose volatile parts are unknown.

    A terminated state has the empty key, which equals itself only.
    """
    if wanted == reached:
        return "exact"
    return "equivalent" if wanted.partition(_SEPARATOR)[0] == reached.partition(_SEPARATOR)[0] else "drifted"


def worst_match(matches: list[Match]) -> Match:
    """Return the worst match along a path. `exact` for an empty path."""
    return max(matches, key=MATCHES.index, default="exact")
