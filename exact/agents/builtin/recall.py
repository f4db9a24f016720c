"""What remembered reflections change in the embedded agent, which is not a language model."""

from __future__ import annotations

import re
from collections.abc import Iterable

from exact.agents.builtin.lexical import similarity
from exact.context import Reflection
from exact.reflection.base import Kind

WEIGHT = 0.3
"""The most that one reflection moves a score in [0, 1]."""

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


def adjustment(reflections: Iterable[Reflection], kind: Kind, instruction: str, label: str) -> tuple[float, str]:
    """What the reflections add to the score of an action, in [-0.6, 0.6], and the one that weighs most, shortened.

    `label` is the action as `exact.reflection.lesson.action_label` writes it. A reflection counts by its surprise, by how alike the
    two actions are, and by how alike the two instructions are.
    """
    total, heaviest, lesson = 0.0, 0.0, ""
    for reflection in reflections:
        likeness = _alike(reflection.action_label or reflection.action, label) if reflection.kind == kind else 0.0
        if likeness < 0.6:
            continue
        related = 0.2 + 0.8 * similarity(reflection.instruction, instruction)
        change = WEIGHT * max(-1.0, min(1.0, reflection.surprise * 2)) * likeness * related
        total += change
        if abs(change) > abs(heaviest):
            heaviest, lesson = change, f"remembers ({change:+.2f}): {reflection.text[:80]}"
    return max(-0.6, min(0.6, total)), lesson


def _alike(known: str, label: str) -> float:
    """How alike two actions are, in [0, 1]: 0 with different verbs; then by the names and texts in them, else by the roles."""
    if known.split(" ", 1)[0] != label.split(" ", 1)[0]:
        return 0.0
    names = [" ".join(_NAME.findall(each)) for each in (known, label)]
    if any(names):
        return similarity(names[0], names[1])
    return 0.6 if known == label else 0.0
