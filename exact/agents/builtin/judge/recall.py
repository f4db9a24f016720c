"""Adjustment of scores by recalled reflections, for the built-in agent, which is not a language model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exact.action import Action
from exact.agents.builtin.language.lexical import similarity
from exact.context import Context, Reflection, Taken
from exact.observation import Observation
from exact.reflection.base import Kind
from exact.reflection.record import action_kind, without_places

MAX_WEIGHT = 0.3
"""Maximum change of a score in [0, 1] by one reflection, among many that agree."""
MAX_ADJUSTMENT = 0.6
"""Maximum change of a score by all reflections."""
SUPPORT_PRIOR, BLAME_PRIOR = 1, 4
"""Attempts needed, in favour of an action and against it, for half of their vote to count. A successful attempt shows that each of its
steps works. A failed attempt shows only that one of its several steps was wrong."""

_WORD = re.compile(r"\w+")
_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"')


def reflection_adjustment(context: Context, kind: Kind, action: Action, seen: Observation, history: Sequence[Taken]) -> tuple[float, str]:
    """Return the change that reflections make to an action's score, and the start of the reflection that weighs most.

    The change is in [-MAX_ADJUSTMENT, MAX_ADJUSTMENT]. `history` is the steps before the action. A reflection from one attempt may be
    chance or wrong: if n attempts agree with the sum, its weight is n / (n + SUPPORT_PRIOR) in favour of the action, and n / (n +
    BLAME_PRIOR) against it.
    """
    label = action_kind(action, seen)
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
    """Return a reflection's vote on an action, in [-1, 1]: its surprise, scaled by the similarity of actions and instructions."""
    likeness = _action_similarity(without_places(reflection.action_label) or reflection.action, label)
    if likeness < 0.6:
        return 0.0
    return max(-1.0, min(1.0, reflection.surprise * 2)) * likeness * (0.2 + 0.8 * similarity(reflection.instruction, instruction))


def _already_followed(reflection: Reflection, label: str, seen: Observation, history: Sequence[Taken]) -> bool:
    """Return whether the action was already taken in a state that fits the reflection better than this one."""
    done = [step.observation for step in history if not step.error and action_kind(step.action, step.observation) == label]
    return any(_shared_words(each.text, reflection.state) >= _shared_words(seen.text, reflection.state) for each in done)


def _shared_words(one: str, other: str) -> float:
    """Return the share of words that two texts have in common, in [0, 1]."""
    words, others = (set(_WORD.findall(text.casefold())) for text in (one, other))
    return len(words & others) / max(1, len(words | others))


def _action_similarity(known: str, label: str) -> float:
    """Return the similarity of two actions, in [0, 1].

    0 if their verbs differ; otherwise by the names and texts in them, or by roles if there are none.
    """
    if known.split(" ", 1)[0] != label.split(" ", 1)[0]:
        return 0.0
    names = [" ".join(_NAME.findall(each)) for each in (known, label)]
    if any(names):
        return similarity(names[0], names[1])
    return 0.6 if known == label else 0.0
