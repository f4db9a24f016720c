"""Two readings of the raw reward of a MiniWoB++ episode, which lies in [-1, 1] and does not decay with time here."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def browsergym(raw: float) -> float:
    """Return 1 for any positive reward, as BrowserGym 0.14 does: a part of a solution counts as a whole one. `score` is this reading."""
    return float(raw > 0)


def binary(raw: float) -> float:
    """Return 1 for the full reward alone: a part of a solution counts as none."""
    return float(raw >= 1)


REWARDS: Mapping[str, Callable[[float], float]] = {"browsergym (raw > 0)": browsergym, "binary (raw = 1)": binary}
"""Readings by their names in tables."""
