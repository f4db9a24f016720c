"""Grade scales: the number for each letter, and the transform from the scale's own range to [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from exact.errors import unknown


class GradeScale(NamedTuple):
    """A number for each letter, and the range of those numbers."""

    letters: Mapping[str, float]
    """Numbers on the scale's own range, best first."""
    low: float = 0.0
    high: float = 1.0
    source: str = ""

    def value(self, letter: str) -> float:
        """Return the value of a letter in [0, 1]: (x - low) / (high - low).

        Raises KeyError for a letter outside the scale.
        """
        return (self.letters[letter] - self.low) / (self.high - self.low)


def _scale(best: str, *, low: float = 0.0, source: str) -> GradeScale:
    numbers = (float(number) for number in best.split())
    return GradeScale(MappingProxyType(dict(zip("ABCDE", numbers, strict=True))), low=low, source=source)


SCALES: Mapping[str, GradeScale] = MappingProxyType(
    {
        "even": _scale("1 0.8 0.5 0.2 0", source="exact's own"),
        "web": _scale("1 0.9 0.5 0.2 0", source="ExACT on VisualWebArena: direct, rubric and debate"),
        "desktop": _scale("1 0.5 0.2 -0.2 -1", low=-1.0, source="ExACT on OSWorld: direct and single debate"),
        "reinforced": _scale("1 0.7 0.5 -0.2 -1", low=-1.0, source="ExACT on VisualWebArena: debate with reflections"),
    }
)
"""Presets by name. All use the letters A to E with the meanings in the prompts."""


def grade_scale(name: str) -> GradeScale:
    """Return a preset scale.

    Raises UsageError for an unknown name.
    """
    if name not in SCALES:
        raise unknown("scale of grades", name, SCALES)
    return SCALES[name]
