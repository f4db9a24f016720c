"""Whether what the instruction only mentions, the place or person it is about, is in sight or was opened.

Part of the embedded agent, which is not a language model.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from exact.agents.builtin import page as pages
from exact.agents.builtin.clauses import VERBS
from exact.agents.builtin.lexical import STOP, words
from exact.agents.builtin.matching import page_words
from exact.agents.builtin.page import Page
from exact.agents.builtin.parts import Goal, nth, role_of
from exact.context import Taken


def placed(goal: Goal, page: Page, history: Sequence[Taken]) -> float:
    """Which share of what is mentioned is on the page, or stood on or near what was clicked on the way; in [0, 1], 1 if nothing is."""
    values = setting(goal)
    if not values:
        return 1.0
    known = set(page_words(page))
    for step in history:
        item = pages.read(step.observation, goal.instruction).by_id.get(step.action.elements[0]) if step.action.elements else None
        if item is not None and not step.error and step.action.name == "click":
            known.update(words(f"{item.label} {item.near}"))
    return sum(1 for value in values if set(words(value)) - STOP <= known) / len(values)


@functools.lru_cache(maxsize=256)
def setting(goal: Goal) -> tuple[str, ...]:
    """The values in the instruction that no part acts on or writes: whose record it is, in which list."""
    own = {
        word
        for part in goal.parts
        if part.kind not in ("find", "answer")
        for text in (*part.targets, part.text, part.ending, part.verb)
        for word in words(text)
    }
    grammar = own | STOP | set(VERBS)
    return tuple(
        value for value in goal.texts if set(words(value)) - grammar and not nth(value.casefold()) and role_of(value.casefold()) is None
    )
