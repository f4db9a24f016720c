"""Choices that models write without a part. Each has one meaning in its state, or none.

The forms are those of recorded answers of instruct models: see tests/agents/test_meant.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from exact.action import Action, ActionSpace, Parameter
from exact.environments.browser.act.grammar import LISTS, options_in
from exact.observation import Element, Observation
from exact.views.labels import QUOTED, fits, unquoted

_NAMED = re.compile(rf"\s*select\s+(?:[A-Za-z]\w*\s+)?(?P<label>{QUOTED})\s*", re.S)
_NUMBERED = re.compile(r"\s*select\s+(?:[A-Za-z]\w*\s+)?\[\s*(?P<id>[\w:.-]+)\s*\]\s*")
_CLICKED = frozenset(("tab", "checkbox", "radio", "treeitem", "menuitemcheckbox", "menuitemradio"))
"""Roles of elements that a click selects."""


def meant(text: str, actions: ActionSpace, observation: Observation) -> Action | None:
    """Return the action that a text with the verb `select` means in a state, though it does not fit. None if it means none, or several.

    `select [3]` is a click if that is a tab, a checkbox or the like. `select "Spain"` is a choice in the list that has it.
    """
    found = dict.fromkeys(_meanings(text, observation))
    if len(found) != 1:
        return None
    [(name, *args)] = found
    verb = actions.verbs.get(name)
    return actions.action(name, *args) if verb and verb.form == (Parameter.ELEMENT, Parameter.TEXT)[: len(args)] else None


def _meanings(text: str, observation: Observation) -> Iterator[tuple[str, ...]]:
    """Yield the verb and the arguments of each meaning of a text."""
    by_name, by_id = _NAMED.fullmatch(text), _NUMBERED.fullmatch(text)

    def says(element: Element) -> bool:
        if by_id:
            return element.id == by_id["id"]
        return by_name is not None and fits(element.name, unquoted(by_name["label"]))

    for each in observation.elements if by_name or by_id else ():
        if each.role in _CLICKED and says(each):
            yield "click", each.id
        if each.role in LISTS:
            yield from (("select", each.id, option.name) for option in options_in(each, observation.elements) if says(option))
