"""How far a reflection has earned its place."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Counts = float | npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

EVIDENCE = 4.0
"""Attempts that the common rate counts for, before a reflection's own record outweighs it."""
FADED = 0.5
"""Below this share of the common rate a reflection is not shown any more."""


def common_rate(helped: float, hurt: float) -> float:
    """Share of attempts that went well, over all reflections that were shown; a half while nothing is known."""
    return (helped + 2.0) / (helped + hurt + 4.0)


def utility(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """Share of attempts that go well with it, drawn towards the common rate; in (0, 1)."""
    return np.asarray((helped + EVIDENCE * rate) / (helped + hurt + EVIDENCE))


def fade(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """What its likeness counts, in [0, 1]: less than 1 only where attempts went worse with it than with others.

    0 where it is below FADED. It is measured by the common rate, for where tasks are hard all reflections fail alike.
    """
    share = np.minimum(1.0, utility(helped, hurt, rate) / rate)
    return np.where(share >= FADED, share, 0.0)
