"""Is the state that was reached the state that was meant?

A fingerprint tells states apart by what is not volatile. Whether two states of one fingerprint also agree in what is volatile is told by
the digest that an observation has beside it; a journal keeps the fingerprint alone.
"""

from __future__ import annotations

from typing import Literal, get_args

from exact.observation import Observation

Verdict = Literal["exact", "equivalent", "drifted"]
"""exact: the same. equivalent: the same but for volatile parts, or not known to be more. drifted: another state."""

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

_BETWEEN = "~"


def mark(observation: Observation | None) -> str:
    """What an observation is compared by: its fingerprint, with the digest of its volatile parts where it has such. Empty for none."""
    if observation is None:
        return ""
    return observation.fingerprint + (f"{_BETWEEN}{observation.volatile}" if observation.volatile else "")


def verdict(expected: str, got: str) -> Verdict:
    """How the state that came compares with the one that was meant. Each is a mark, or a bare fingerprint where no more is known.

    An episode that ended has the empty mark, which equals itself only.
    """
    if expected == got:
        return "exact"
    return "equivalent" if expected.partition(_BETWEEN)[0] == got.partition(_BETWEEN)[0] else "drifted"


def worst(verdicts: list[Verdict]) -> Verdict:
    """Of a path: that of the state which was missed most. `exact` for an empty path."""
    return max(verdicts, key=VERDICTS.index, default="exact")
