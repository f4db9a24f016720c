"""What remembered reflections change in the embedded agent, which is not a language model."""

from __future__ import annotations

from collections.abc import Iterable

from exact.action import Action
from exact.agents.builtin.lexical import similarity, words
from exact.agents.builtin.page import Page
from exact.context import Reflection
from exact.reflection.base import Kind

WEIGHT = 0.3
"""The most that one reflection moves a score in [0, 1]."""


def label_of(action: Action, page: Page) -> str:
    """The action with roles and names in place of ids: what it means in another state."""
    named = [page.by_id[id] for id in action.elements if id in page.by_id]
    elements = [f"{item.element.role} {item.label}".strip() for item in named]
    rest = [str(arg) for arg in action.args if arg not in action.elements]
    return " ".join([action.name, *elements, *rest])


def adjustment(reflections: Iterable[Reflection], kind: Kind, instruction: str, label: str) -> tuple[float, str]:
    """What the reflections add to the score of an action of this label, in [-0.6, 0.6], and the one that weighs most, shortened.

    A reflection counts by its surprise, by how alike the two actions are, and by how alike the two instructions are.
    """
    total, heaviest, lesson = 0.0, 0.0, ""
    for reflection in reflections:
        if reflection.kind != kind:
            continue
        known = reflection.action_label or reflection.action
        alike = similarity(" ".join(words(known)), " ".join(words(label)))
        if alike < 0.6:
            continue
        related = 0.5 + 0.5 * similarity(reflection.instruction, instruction)
        change = WEIGHT * max(-1.0, min(1.0, reflection.surprise * 2)) * alike * related
        total += change
        if abs(change) > abs(heaviest):
            heaviest, lesson = change, f"remembers ({change:+.2f}): {reflection.text[:80]}"
    return max(-0.6, min(0.6, total)), lesson
