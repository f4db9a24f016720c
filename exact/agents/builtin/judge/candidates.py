"""The actions worth considering in a state: from its elements and the environment's grammar.

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
"""At most so many candidates in a state."""


def candidate_actions(at: Situation, actions: ActionSpace) -> tuple[Action, ...]:
    """Distinct actions that the grammar admits, elements in document order first; at most LIMIT."""
    found: dict[str, Action] = {}

    def add(verb: str, *args: str) -> None:
        if verb not in actions.verbs or len(found) >= MAX_CANDIDATES:
            return
        try:
            action = actions.action(verb, *args)
        except ActionError:
            return
        found.setdefault(action.key, action)

    actable = sorted(at.page.actable, key=lambda item: (not item.widget, item.index))
    for item in actable:
        for text in _texts(at, item):
            add("fill", item.element.id, text)
        for option in _options(at, item):
            add("select", item.element.id, option)
        if item.role != "option" or not _in_combobox(at, item):
            add("click", item.element.id)
    _gestures(at, actable, add)
    for key in _keys(at):
        add("press", key)
    for direction in ("down", "up"):
        add("scroll", direction)
    add("go_back")
    add("wait")
    for answer in _answers(at):
        add("stop", answer)
    return tuple(found.values())


def _answers(at: Situation) -> list[str]:
    """What to end the attempt with, if it may be ended."""
    if at.question is None:
        return [""] if at.application or not at.progress.open else []
    return [each.text for each in at.answers] + [at.question.absent] * bool(at.question.absent)


def _texts(at: Situation, item: Item) -> list[str]:
    if item.role not in FIELDS or "readonly" in item.element.states:
        return []
    if at.application and (is_search_field(item, at.page) or _application_texts(at, item)):
        return _application_texts(at, item)
    if chosen := [text for s in at.progress.statuses for text in field_settings(item, s.part)]:
        return chosen
    statuses = [s for s in at.progress.statuses if s.part.kind == "fill"]
    labels = {s.part.label for s in at.progress.statuses if s.part.kind != "fill"}
    wanted = [adjacent_text(item.label, at.page)] if statuses else []
    wanted += [s.text for s in statuses] or [text for text in at.goal.texts if text.casefold() not in labels][:6]
    texts = list(dict.fromkeys(format_for_field(item, text) for text in wanted if text))
    return [*texts, ""] if is_misplaced(item, at.goal, at.page) else texts


def _application_texts(at: Situation, item: Item) -> list[str]:
    """What may go into an application's field: what the instruction gives for it; into one to search by, what is asked about."""
    if is_search_field(item, at.page):
        return list(at.subjects)
    value = given_value(item.label, at.goal.instruction)
    return [value] if value else [] if item.element.value else list(quoted_texts(at.goal.instruction))


def _options(at: Situation, item: Item) -> list[str]:
    if item.role not in ("combobox", "listbox"):
        return []
    inside = [i.element.name for i in at.page.items if i.role == "option" and i.element.name and _holder(at, i) == item.index]
    return list(dict.fromkeys(inside))[:40]


def _holder(at: Situation, item: Item) -> int:
    index = item.parent
    while index >= 0 and at.page.items[index].role not in ("combobox", "listbox"):
        index = at.page.items[index].parent
    return index


def _in_combobox(at: Situation, item: Item) -> bool:
    return _holder(at, item) >= 0


def _gestures(at: Situation, actable: list[Item], add: object) -> None:
    assert callable(add)
    kinds = {s.part.kind for s in at.progress.statuses if not s.done}
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


def _keys(at: Situation) -> list[str]:
    escape = ["Escape"] if at.tried else []
    focused = next((item for item in at.page.items if "focused" in item.element.states), None)
    if focused is not None and focused.role == "slider":
        return [*escape, "ArrowRight", "ArrowLeft"]
    if focused is None or focused.role not in FIELDS:
        return escape
    return [*escape, "Enter", *(["Control+End", "Control+Home"] if any(s.part.kind == "scroll" for s in at.progress.statuses) else [])]
