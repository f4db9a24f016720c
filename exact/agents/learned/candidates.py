"""Candidate actions of the learned agent: those of the lexical agent, and more texts, drags, points and scrolling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.situation import Situation
from exact.agents.builtin.language.lexical import vocabulary, words
from exact.agents.builtin.page.matching import is_submit
from exact.agents.builtin.page.page import FIELDS, TEXTS, Item
from exact.agents.learned.gestures import Drag, boxed, marks, pulls, pushes
from exact.errors import ActionError

MOST = 160
"""Most candidates of a state."""
_MOVES = vocabulary("drag sort move arrange order put drop")
_POINTS = vocabulary("mid-point midpoint middle between halfway")
_WAYS = vocabulary("left right up down upward upwards downward downwards")
_SIZES = vocabulary("resize size larger smaller bigger wider narrower taller shorter")
_MARKS = vocabulary("highlight")
_SCROLLS = vocabulary("scroll")
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
    for drag in _drags(situation, said):
        yield "drag_at", *drag
    if said & _SCROLLS:
        for item in [each for each in situation.page.items if each.role in FIELDS][:4]:
            yield "scroll_in", item.element.id, "down"
            yield "scroll_in", item.element.id, "up"
    if said & _POINTS:
        boxes = [item.element.box for item in situation.page.actable if item.role in _PICTURED and item.element.box][:4]
        for first, second in combinations(boxes, 2):
            x = (first.x + first.width / 2 + second.x + second.width / 2) / 2
            yield "click_at", x, (first.y + first.height / 2 + second.y + second.height / 2) / 2


def _drags(situation: Situation, said: set[str]) -> Iterator[Drag]:
    """Yield the drags between points that an instruction may mean."""
    if said & _MOVES and said & _WAYS:
        yield from (drag for box in boxed(situation.page.items, _PICTURED, 4) for drag in pushes(box))
    if said & _SIZES:
        yield from (drag for box in boxed(situation.page.items, FIELDS, 4) for drag in pulls(box))
    if said & _MARKS:
        yield from (marks(box) for box in boxed(situation.page.items, TEXTS, 8))


def _movable(situation: Situation) -> list[Item]:
    """Return the elements that may be dragged or dropped on."""
    return [item for item in situation.page.actable if not is_submit(item) and item.role not in FIELDS][:8]
