"""Candidate actions of a state, from its elements and the environment's grammar.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.progress import is_misplaced
from exact.agents.builtin.judge.situation import Situation
from exact.agents.builtin.page.derive import adjacent_text, field_settings, format_for_field
from exact.agents.builtin.page.field_values import given_value, is_search_field, quoted_texts
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import FIELDS, Item
from exact.errors import ActionError

MAX_CANDIDATES = 200
"""Maximum number of candidates in a state."""


def candidate_actions(situation: Situation, actions: ActionSpace) -> tuple[Action, ...]:
    """Return distinct actions that the grammar admits, at most `MAX_CANDIDATES`, elements in document order first."""
    found: dict[str, Action] = {}

    def add(verb: str, *args: str) -> None:
        if verb not in actions.verbs or len(found) >= MAX_CANDIDATES:
            return
        try:
            action = actions.action(verb, *args)
        except ActionError:
            return
        found.setdefault(action.key, action)

    actable = sorted(situation.page.actable, key=lambda item: (not item.widget, item.index))
    for item in actable:
        for text in _texts(situation, item):
            add("fill", item.element.id, text)
        for option in _options(situation, item):
            add("select", item.element.id, option)
        if item.role != "option" or not _in_combobox(situation, item):
            add("click", item.element.id)
    _gestures(situation, actable, add)
    for key in _keys(situation):
        add("press", key)
    for direction in ("down", "up"):
        add("scroll", direction)
    add("go_back")
    add("wait")
    for answer in _answers(situation):
        add("stop", answer)
    return tuple(found.values())


def _answers(situation: Situation) -> list[str]:
    """Return the texts to end the attempt with, if it may end."""
    if situation.question is None:
        return [""] if situation.application or not situation.progress.open else []
    return [each.text for each in situation.answers] + [situation.question.absent_answer] * bool(situation.question.absent_answer)


def _texts(situation: Situation, item: Item) -> list[str]:
    if item.role not in FIELDS or "readonly" in item.element.states:
        return []
    if situation.application and (is_search_field(item, situation.page) or _application_texts(situation, item)):
        return _application_texts(situation, item)
    if chosen := [text for s in situation.progress.statuses for text in field_settings(item, s.subgoal)]:
        return chosen
    statuses = [s for s in situation.progress.statuses if s.subgoal.kind == "fill"]
    labels = {s.subgoal.label for s in situation.progress.statuses if s.subgoal.kind != "fill"}
    wanted = [adjacent_text(item.label, situation.page)] if statuses else []
    wanted += [s.text for s in statuses] or [text for text in situation.goal.literals if text.casefold() not in labels][:6]
    texts = list(dict.fromkeys(format_for_field(item, text) for text in wanted if text))
    return [*texts, ""] if is_misplaced(item, situation.goal, situation.page) else texts


def _application_texts(situation: Situation, item: Item) -> list[str]:
    """Return the texts for an application's field.

    They are the values that the instruction gives for the field, or the search terms if it is a search field.
    """
    if is_search_field(item, situation.page):
        return list(situation.search_terms)
    value = given_value(item.label, situation.goal.instruction)
    return [value] if value else [] if item.element.value else list(quoted_texts(situation.goal.instruction))


def _options(situation: Situation, item: Item) -> list[str]:
    if item.role not in ("combobox", "listbox"):
        return []
    inside = [i.element.name for i in situation.page.items if i.role == "option" and i.element.name and _holder(situation, i) == item.index]
    return list(dict.fromkeys(inside))[:40]


def _holder(situation: Situation, item: Item) -> int:
    index = item.parent
    while index >= 0 and situation.page.items[index].role not in ("combobox", "listbox"):
        index = situation.page.items[index].parent
    return index


def _in_combobox(situation: Situation, item: Item) -> bool:
    return _holder(situation, item) >= 0


def _gestures(situation: Situation, actable: list[Item], add: object) -> None:
    assert callable(add)
    kinds = {s.subgoal.kind for s in situation.progress.statuses if not s.done}
    some = [item for item in actable if (item.label or item.role in ("image", "img", "listitem")) and not is_submit(item)][:8]
    for item in actable:
        if item.role == "menuitem":
            add("hover", item.element.id)
    if "hover" in kinds:
        for item in some:
            add("hover", item.element.id)
    if "drag" in kinds:
        for item in some:
            for other in some:
                if other is not item:
                    add("drag", item.element.id, other.element.id)


def _keys(situation: Situation) -> list[str]:
    escape = ["Escape"] if situation.tried else []
    focused = next((item for item in situation.page.items if "focused" in item.element.states), None)
    if focused is not None and focused.role == "slider":
        return [*escape, "ArrowRight", "ArrowLeft"]
    if focused is None or focused.role not in FIELDS:
        return escape
    return [
        *escape,
        "Enter",
        *(["Control+End", "Control+Home"] if any(s.subgoal.kind == "scroll" for s in situation.progress.statuses) else []),
    ]
