"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the singular or the plural: `1 step`, `2 steps`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
