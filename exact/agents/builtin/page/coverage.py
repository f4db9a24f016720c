"""Coverage of the instruction's words and values by the page and by the clicks on the way to it.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from exact.agents.builtin.language.clauses import ACTION_VERBS, VERBS
from exact.agents.builtin.language.lexical import STOP_WORDS, words
from exact.agents.builtin.language.subgoals import Goal, ordinal_value, roles_for_noun
from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.matching import page_words, proximity
from exact.agents.builtin.page.page import Item, PageModel
from exact.context import Taken


def setting_coverage(goal: Goal, page: PageModel, history: Sequence[Taken]) -> float:
    """Return the share of the instruction's setting that is on the page or near a clicked element, in [0, 1].

    The setting is the values that no subgoal acts on. 1 if there are none.
    """
    values = setting_values(goal)
    if not values:
        return 1.0
    known = page_words(page) | _clicked_words(goal, history)
    return sum(1 for value in values if set(words(value)) - STOP_WORDS <= known) / len(values)


def word_coverage(goal: Goal, page: PageModel, history: Sequence[Taken]) -> float:
    """Return the share of the instruction's words that occur on the page, in its fields, or near a clicked element, in [0, 1].

    It needs no parsed instruction, so it is informative even if parsing failed.
    """
    wanted = _content_words(goal)
    if not wanted:
        return 1.0
    written = {word for item in page.items if item.element.value and not item.echo for word in words(item.element.value)}
    return len(wanted & (page_words(page) | written | _clicked_words(goal, history))) / len(wanted)


def wrong_record_clicks(goal: Goal, history: Sequence[Taken]) -> int:
    """Return the number of clicks on another record's element.

    An equal element was nearer to the instruction's values.
    """
    return sum(1 for step in history if step.action.name == "click" and not step.error and _is_wrong_record(goal, step))


def _is_wrong_record(goal: Goal, step: Taken) -> bool:
    page = pages.read_page(step.observation, goal.instruction)
    item = page.by_id.get(step.action.elements[0])
    if item is None:
        return False
    near = proximity(item, goal, page)
    return any(other.role == item.role and other.label == item.label and proximity(other, goal, page) > near for other in page.actable)


def clicked_items(goal: Goal, history: Sequence[Taken]) -> Iterator[Item]:
    """Yield the clicked elements, in order."""
    for step in history:
        item = pages.read_page(step.observation, goal.instruction).by_id.get(step.action.elements[0]) if step.action.elements else None
        if item is not None and not step.error and step.action.name == "click":
            yield item


def _clicked_words(goal: Goal, history: Sequence[Taken]) -> set[str]:
    """Return the words on and near the clicked elements."""
    return {word for item in clicked_items(goal, history) for word in words(f"{item.label} {item.nearby}")}


@functools.lru_cache(maxsize=256)
def _content_words(goal: Goal) -> frozenset[str]:
    """Return the instruction's words without grammar and role names. Verbs that may be the label of an element are kept."""
    spoken = frozenset(words(goal.instruction)) - STOP_WORDS - (set(VERBS) - ACTION_VERBS)
    return frozenset(word for word in spoken if roles_for_noun(word) is None)


@functools.lru_cache(maxsize=256)
def setting_values(goal: Goal) -> tuple[str, ...]:
    """Return the values in the instruction that no subgoal acts on or enters: whose record it is, in which list."""
    own = {
        word
        for subgoal in goal.subgoals
        if subgoal.kind not in ("find", "answer")
        for text in (*subgoal.targets, subgoal.text, subgoal.ending, subgoal.verb)
        for word in words(text)
    }
    grammar = own | STOP_WORDS | set(VERBS)
    return tuple(
        value
        for value in goal.literals
        if set(words(value)) - grammar and not ordinal_value(value.casefold()) and roles_for_noun(value.casefold()) is None
    )
