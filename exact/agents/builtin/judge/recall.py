"""What remembered reflections change in the built-in agent, which is not a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exact.action import Action
from exact.agents.builtin.language.lexical import similarity
from exact.context import Context, Reflection, Taken
from exact.observation import Observation
from exact.reflection.base import Kind
from exact.reflection.lesson import action_label

MAX_WEIGHT = 0.3
"""The most that one reflection moves a score in [0, 1], beside many that agree with it."""
MAX_ADJUSTMENT = 0.6
"""The most that all move it."""
SUPPORT_PRIOR, BLAME_PRIOR = 1, 4
"""Attempts that would have to speak for an action, and against one, for half of what they say to count. One that went well shows that each
of its steps will do; one that did not shows that one of them was to blame, and an attempt has several."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


def reflection_adjustment(context: Context, kind: Kind, action: Action, seen: Observation, history: Sequence[Taken]) -> tuple[float, str]:
    """What the reflections add to the score of an action in a state, in [-MOST, MOST], and the one that weighs most, shortened.

    `history`: what was done before it. What one attempt taught may be chance or wrong: where n attempts agree with what all say together,
    n / (n + DOUBT) of that counts for the action, and n / (n + BLAME) against it.
    """
    label = action_label(action, seen)
    votes = [
        (vote, each)
        for each in context.reflections
        if each.kind == kind and (vote := _vote(each, label, context.instruction)) and not _already_followed(each, label, seen, history)
    ]
    if not votes:
        return 0.0, ""
    total = sum(vote for vote, _ in votes)
    agreeing = len({(each.run, each.task or each.id) for vote, each in votes if vote * total > 0})
    share = agreeing / (agreeing + (SUPPORT_PRIOR if total > 0 else BLAME_PRIOR))
    change = max(-MAX_ADJUSTMENT, min(MAX_ADJUSTMENT, MAX_WEIGHT * total * share))
    _, heaviest = max(votes, key=lambda vote: vote[0] * total)
    return change, f"remembers ({change:+.2f}): {heaviest.text[:80]}"


def _vote(reflection: Reflection, label: str, instruction: str) -> float:
    """What a reflection says of an action, in [-1, 1]: by its surprise, and how alike the actions are and the instructions."""
    likeness = _action_similarity(reflection.action_label or reflection.action, label)
    if likeness < 0.6:
        return 0.0
    return max(-1.0, min(1.0, reflection.surprise * 2)) * likeness * (0.2 + 0.8 * similarity(reflection.instruction, instruction))


def _already_followed(reflection: Reflection, label: str, seen: Observation, history: Sequence[Taken]) -> bool:
    """Whether an action was done already in a state that fits a reflection better than this one: it spoke of that."""
    done = [step.observation for step in history if not step.error and action_label(step.action, step.observation) == label]
    return any(_shared_words(each.text, reflection.state) >= _shared_words(seen.text, reflection.state) for each in done)


def _shared_words(one: str, other: str) -> float:
    """The share of the words of two texts that both have, in [0, 1]."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / max(1, len(words | others))


def _action_similarity(known: str, label: str) -> float:
    """How alike two actions are, in [0, 1]: 0 with different verbs; then by the names and texts in them, else by the roles."""
    if known.split(" ", 1)[0] != label.split(" ", 1)[0]:
        return 0.0
    names = [" ".join(_NAME.findall(each)) for each in (known, label)]
    if any(names):
        return similarity(names[0], names[1])
    return 0.6 if known == label else 0.0
