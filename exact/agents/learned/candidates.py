"""Candidate actions of the learned agent: those of the lexical agent, and more texts, drags and points."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.situation import Situation
from exact.agents.builtin.language.lexical import vocabulary, words
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import FIELDS, Item
from exact.errors import ActionError

MOST = 160
"""Most candidates of a state."""
_MOVES = vocabulary("drag sort move arrange order put drop")
_POINTS = vocabulary("mid-point midpoint middle between halfway")
_PICTURED = frozenset({"graphics-symbol", "image", "img"})


def wide_candidates(situation: Situation, actions: ActionSpace) -> tuple[Action, ...]:
    """Return distinct actions that the grammar admits, the lexical agent's first, at most `MOST`."""
    found = {action.key: action for action in candidate_actions(situation, actions)[:MOST]}
    for verb, *args in _more(situation):
        if verb not in actions.verbs or len(found) >= MOST:
            continue
        try:
            action = actions.action(verb, *args)
        except ActionError:
            continue
        found.setdefault(action.key, action)
    return tuple(found.values())


def _more(situation: Situation) -> Iterator[tuple[str, *tuple[str | float, ...]]]:
    """Yield the verb and the arguments of each further action."""
    fields = [item for item in situation.page.actable if item.role in FIELDS]
    held = [item.element.value for item in fields if item.element.value]
    for item in fields:
        if "readonly" not in item.element.states:
            others = [text for text in held if text != item.element.value][:3]
            for text in (*situation.goal.literals[:6], *others):
                yield "fill", item.element.id, text
    said = set(words(situation.goal.instruction))
    if said & _MOVES:
        for one, other in permutations(_movable(situation), 2):
            yield "drag", one.element.id, other.element.id
    if said & _POINTS:
        boxes = [item.element.box for item in situation.page.actable if item.role in _PICTURED and item.element.box][:4]
        for first, second in combinations(boxes, 2):
            x = (first.x + first.width / 2 + second.x + second.width / 2) / 2
            yield "click_at", x, (first.y + first.height / 2 + second.y + second.height / 2) / 2


def _movable(situation: Situation) -> list[Item]:
    """Return the elements that may be dragged or dropped on."""
    return [item for item in situation.page.actable if not is_submit(item) and item.role not in FIELDS][:8]
