"""Usefulness of reflections, from the attempts that they were shown in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Counts = float | npt.NDArray[np.int64]
Shares = npt.NDArray[np.float64]

EVIDENCE = 4.0
"""Weight of the common rate, in attempts."""
FADED = 0.5
"""Share of the common rate below which a reflection is no longer shown."""


def common_rate(helped: float, hurt: float) -> float:
    """Return the share of successful attempts over all shown reflections; 0.5 while nothing is known."""
    return (helped + 2.0) / (helped + hurt + 4.0)


def utility(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """Return the share of successful attempts with a reflection, shrunk towards the common rate, in (0, 1)."""
    return np.asarray((helped + EVIDENCE * rate) / (helped + hurt + EVIDENCE))


def fade(helped: Counts, hurt: Counts, rate: float) -> Shares:
    """Return the factor of a reflection's similarity, in [0, 1]: below 1 only where attempts went worse with it than with others.

    It is 0 below FADED, and relative to the common rate, because on hard tasks all reflections fail alike.
    """
    share = np.minimum(1.0, utility(helped, hurt, rate) / rate)
    return np.where(share >= FADED, share, 0.0)
