"""What remembered reflections change in the embedded agent, which is not a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exact.action import Action
from exact.agents.builtin.lexical import similarity
from exact.context import Context, Reflection, Taken
from exact.observation import Observation
from exact.reflection.base import Kind
from exact.reflection.lesson import action_label

WEIGHT = 0.3
"""The most that one reflection moves a score in [0, 1]."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


def adjustment(context: Context, kind: Kind, action: Action, seen: Observation, history: Sequence[Taken]) -> tuple[float, str]:
    """What the reflections add to the score of an action in a state, in [-0.6, 0.6], and the one that weighs most, shortened.

    `history`: what was done before it. A reflection counts by its surprise, by how alike the two actions are, and by how alike the two
    instructions are; not at all where the action was done before in a state more like its own: it spoke of that.
    """
    label, total, heaviest, lesson = action_label(action, seen), 0.0, 0.0, ""
    for reflection in context.reflections:
        likeness = _alike(reflection.action_label or reflection.action, label) if reflection.kind == kind else 0.0
        if likeness < 0.6 or _spent(reflection, label, seen, history):
            continue
        related = 0.2 + 0.8 * similarity(reflection.instruction, context.instruction)
        change = WEIGHT * max(-1.0, min(1.0, reflection.surprise * 2)) * likeness * related
        total += change
        if abs(change) > abs(heaviest):
            heaviest, lesson = change, f"remembers ({change:+.2f}): {reflection.text[:80]}"
    return max(-0.6, min(0.6, total)), lesson


def _spent(reflection: Reflection, label: str, seen: Observation, history: Sequence[Taken]) -> bool:
    """Whether an action was done already where what is known of it fits better than now."""
    done = [step.observation for step in history if not step.error and action_label(step.action, step.observation) == label]
    return any(_shared(each.text, reflection.state) >= _shared(seen.text, reflection.state) for each in done)


def _shared(one: str, other: str) -> float:
    """The share of the words of two texts that both have, in [0, 1]."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / max(1, len(words | others))


def _alike(known: str, label: str) -> float:
    """How alike two actions are, in [0, 1]: 0 with different verbs; then by the names and texts in them, else by the roles."""
    if known.split(" ", 1)[0] != label.split(" ", 1)[0]:
        return 0.0
    names = [" ".join(_NAME.findall(each)) for each in (known, label)]
    if any(names):
        return similarity(names[0], names[1])
    return 0.6 if known == label else 0.0
