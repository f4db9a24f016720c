"""The model's features of a state and of its candidate actions: hashed tokens, numbers, and the lexical agent's scores.

Relations between the elements of a page: the elements that lead to an element, the order of numbers, and the number of elements asked for.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.action import Action
from exact.agents.builtin.judge.recall import reflection_adjustment
from exact.agents.builtin.judge.score import score_action
from exact.agents.builtin.judge.situation import Situation
from exact.agents.builtin.language.lexical import STOP_WORDS, stem, words
from exact.agents.builtin.page.matching import mention_score
from exact.agents.builtin.page.page import WIDGETS, Item
from exact.agents.learned.tokens import CROSSES, drag_place, number, said_words, token, trigrams, word_tokens
from exact.context import Context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]
    Ints = NDArray[np.integer[Any]]


ACTION_NUMBERS, STATE_NUMBERS = 29, 12
"""Numbers of each candidate, and of a state."""
RAGGED = ("said", "bag", "label", "near", "cross")
"""Fields of StateFeatures that are lists of rows."""
_SIGNATURE = re.compile(r"\"[^\"]*\"|'[^']*'|[@#$]?\b\w*\d[\w/:.-]*|(?<=\s)[A-Z@#]\w*")
"""Matches the parts of an instruction that differ between tasks of one kind: quoted texts, numbers, names."""
_WIDTH, _HEIGHT = 332.0, 214.0


class Ragged(NamedTuple):
    """Lists of rows, one for each candidate or state, in one array."""

    rows: Ints
    starts: Ints
    """Position at which each list begins. No list is empty."""


class StateFeatures(NamedTuple):
    """One state or many, with all their candidates in order."""

    said: Ragged
    """Words of each state's instruction."""
    bag: Ragged
    """Tokens of each candidate."""
    label: Ragged
    """Words of each candidate's label and text."""
    near: Ragged
    """Words around each candidate."""
    cross: Ragged
    """Pairs of a word of the instruction and a property of the candidate."""
    numbers: Floats
    """[candidates, ACTION_NUMBERS]."""
    lexical: Floats
    """[candidates]: score of the lexical agent, in [0, 1]."""
    state: Floats
    """[states, STATE_NUMBERS]."""
    value: Floats
    """[states]: value that the lexical agent gives the state, in (0, 1)."""
    first: Ints
    """[states]: index of each state's first candidate."""


def read_features(context: Context, situation: Situation, actions: Sequence[Action], value: float) -> StateFeatures:
    """Return the features of one state and its candidates, at least one. `value`: the lexical agent's value of the state."""
    import numpy as np

    scored = [score_action(situation, action) for action in actions]
    changes = [reflection_adjustment(context, "policy", action, context.observation, context.history)[0] for action in actions]
    lexical = np.array([one.score + change for one, change in zip(scored, changes, strict=True)], np.float32)
    page = _Page(context, situation)
    read = [page.read(action) for action in actions]
    order = np.argsort(-lexical, kind="stable")
    rank = np.empty(len(actions), np.float32)
    rank[order] = np.arange(len(actions))
    relative = np.stack([lexical, lexical - lexical.max(), 1 / (1 + rank), [float(one.exploratory) for one in scored]], axis=1)
    said = tuple(token("w:" + word) for word in words(situation.goal.instruction)[:40]) or (0,)
    return StateFeatures(
        said=_ragged([said]),
        bag=_ragged([one.bag for one in read]),
        label=_ragged([one.label or (0,) for one in read]),
        near=_ragged([one.near or (0,) for one in read]),
        cross=_crosses(page.pairs, [one.properties for one in read]),
        numbers=np.concatenate([relative, np.array([one.numbers for one in read], np.float32)], axis=1).astype(np.float32),
        lexical=lexical,
        state=np.array([_state_numbers(context, situation, lexical, value)], np.float32),
        value=np.array([value], np.float32),
        first=np.zeros(1, np.int32),
    )


def join(features: Sequence[StateFeatures]) -> StateFeatures:
    """Return the features of many states as one, in order."""
    import numpy as np

    def lists(name: str) -> Ragged:
        parts: list[Ragged] = [getattr(one, name) for one in features]
        shifts = np.cumsum([0, *(len(part.rows) for part in parts[:-1])])
        return Ragged(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.starts + shift for part, shift in zip(parts, shifts, strict=True)]).astype(np.int32),
        )

    counts = np.cumsum([0, *(len(one.lexical) for one in features[:-1])])
    parts: dict[str, Any] = {name: lists(name) for name in RAGGED}
    parts |= {name: np.concatenate([getattr(one, name) for one in features]) for name in ("numbers", "lexical", "state", "value")}
    first = np.concatenate([one.first + shift for one, shift in zip(features, counts, strict=True)]).astype(np.int32)
    return StateFeatures(**parts, first=first)


class _Read(NamedTuple):
    """Features read of one candidate."""

    bag: tuple[int, ...]
    label: tuple[int, ...]
    near: tuple[int, ...]
    properties: tuple[int, ...]
    numbers: tuple[float, ...]


class _Page:
    """Data that the candidates of one state share."""

    def __init__(self, context: Context, situation: Situation) -> None:
        instruction = situation.goal.instruction
        self.situation = situation
        self.said = said_words(instruction)
        self.known = frozenset(self.said)
        signature = " ".join(words(_SIGNATURE.sub(" ", instruction)))
        self.pairs = (*(number("w:" + word) for word in self.said[:12]), number("s:" + signature))
        self.done = Counter(step.action.key for step in context.history if not step.error)
        self.here = Counter(step.action.key for step in context.history if step.observation.fingerprint == situation.fingerprint)
        last = context.history[-1] if context.history else None
        self.last_elements = frozenset(last.action.elements) if last else frozenset()
        self.steps = min(len(context.history), 8)
        self.siblings, self.places = _siblings(situation.page.items)
        self.leads, self.order = leads(situation.page.items), order(situation.page.items)
        self.count = asked_count(situation.page.items, self.said)
        self.led = max((len(self.known & set(words(lead))) for lead in set(self.leads)), default=0)
        self.shown = Counter(word for item in situation.page.items if not item.echo for word in set(words(item.element.name)))
        self.before = self._kind(last.action) if last else "start"
        before = situation.page.by_id.get(last.action.elements[0]) if last and last.action.elements else None
        self.before_label = before.label if before else ""

    def _kind(self, action: Action) -> str:
        """Return the verb, role and place of an action, as one property."""
        item, part, way = self._pointed(action)
        if part or way:
            return f"{action.name}/{item.role if item else ''}/{part}/{way}"
        return (
            f"{action.name}/{item.role}/{self.siblings[item.index]}" if item else f"{action.name}/{'' if action.elements else action.key}"
        )

    def _pointed(self, action: Action) -> tuple[Item | None, str, str]:
        """Return the element that an action points at, the part of it at which a drag begins, and the way of a drag or of scrolling."""
        if action.name == "drag_at":
            return drag_place(self.situation.page.items, action)
        item = self.situation.page.by_id.get(action.elements[0]) if action.elements else None
        return item, "", str(action.args[-1]) if action.name in ("scroll_in", "wheel") else ""

    def read(self, action: Action) -> _Read:
        """Return the features of a candidate."""
        item, _, way = self._pointed(action)
        text = str(action.args[-1]) if action.name in ("fill", "select", "press", "scroll", "stop") else way
        label, near, role = (item.label, item.nearby, item.role) if item else ("", "", "")
        lead = self.leads[item.index] if item else ""
        near = f"{lead} {near}" if lead else near
        if action.name == "drag" and (target := self.situation.page.by_id.get(action.elements[1])):
            text = target.label
        kind, states = self._kind(action), item.element.states if item else ()
        place = self.places[item.index] if item else ""
        bag = (
            token("v:" + action.name),
            token(f"vr:{action.name}/{role}"),
            token("k:" + kind),
            token("g:" + place),
            token(f"p:{self.before}>{action.name}/{role}"),
            *(token("s:" + state) for state in states),
            *word_tokens(label, "l:", 8),
            *trigrams(label[:12], 8),
            *word_tokens(near, "n:", 8),
            *word_tokens(text, "t:", 4),
            *word_tokens(self.before_label, "b:", 3),
        )
        properties = (
            number("k:" + kind),
            number(f"l:{action.name}:{label[:40].casefold()}"),
            number(f"p:{self.before}>{kind}"),
            number(f"n:{action.name}/{role}:{self.steps}"),
            number(f"g:{action.name}/{role}:{place}:{bool(item and item.selected)}"),
            number(f"o:{action.name}/{role}:{self.order}:{self._inverted(action)}"),
        )
        return _Read(
            bag, word_tokens(f"{label} {text}", "w:", 12), word_tokens(near, "w:", 16), properties, self._numbers(action, item, text)
        )

    def _inverted(self, action: Action) -> float:
        """Return whether a drag is between two numbers that fall, 1, or rise, -1."""
        ends = [item for id in action.elements[:2] if (item := self.situation.page.by_id.get(id))]
        return inversion(*ends) if action.name == "drag" and len(ends) == 2 else 0.0

    def _numbers(self, action: Action, item: Item | None, text: str) -> tuple[float, ...]:
        goal = self.situation.goal
        label, near = (item.label, item.nearby) if item else ("", "")
        inner, around, typed = set(words(label)) - STOP_WORDS, set(words(near)) - STOP_WORDS, set(words(text)) - STOP_WORDS
        lead = set(words(self.leads[item.index])) - STOP_WORDS if item else set[str]()
        box = item.element.box if item else None
        states = item.element.states if item else ()
        value = (item.element.value or "") if item else ""
        return (
            _share(inner, self.known),
            _share(around, self.known),
            _share(typed, self.known),
            len(inner & self.known) / max(len(self.known), 1),
            len(around & self.known) / max(len(self.known), 1),
            _share(lead, self.known),
            float(bool(lead) and len(lead & self.known) == self.led > 0),
            self._inverted(action),
            float(bool(label) and label == self.count),
            mention_score(label, goal) if label else 0.0,
            float(bool(text) and text in goal.literals),
            math.log1p(self.done[action.key]),
            float(self.here[action.key] > 0),
            float(bool(action.elements) and action.elements[0] in self.last_elements),
            float(bool(item and item.selected)),
            float("focused" in states),
            float(bool(item and item.element.visible)),
            float(bool(item and item.widget)),
            float(bool(item and item.inert)),
            float(bool(item and item.unlabelled)),
            float(bool(value)),
            float(bool(value) and value == text),
            max((self.shown[word] - 1 for word in inner), default=0) / 3,
            (box.x + box.width / 2) / _WIDTH if box else 0.5,
            (box.y + box.height / 2) / _HEIGHT if box else 0.5,
        )


def _share(some: set[str], known: frozenset[str]) -> float:
    return len(some & known) / len(some) if some else 0.0


def _siblings(items: Sequence[Item]) -> tuple[list[str], list[str]]:
    """Return each element's place in the run of elements of its role, as `2/4`, and the rank of its run among those of its role."""
    run, ranks = [""] * len(items), [""] * len(items)
    seen: Counter[str] = Counter()
    at = 0
    while at < len(items):
        depth, role, members, after = items[at].element.depth, items[at].role, [at], at + 1
        while after < len(items) and (
            items[after].element.depth > depth or (items[after].role == role and items[after].element.depth == depth)
        ):
            if items[after].role == role and items[after].element.depth == depth:
                members.append(after)
            after += 1
        if run[at] == "":
            for place, index in enumerate(members):
                run[index] = f"{min(place, 9)}/{min(len(members), 10)}"
        at += 1
    for item in items:
        ranks[item.index] = f"{item.role}{min(seen[item.role], 40)}"
        seen[item.role] += 1
    return run, ranks


def _state_numbers(context: Context, situation: Situation, lexical: Floats, value: float) -> tuple[float, ...]:
    progress, top = situation.progress, sorted(lexical, reverse=True)
    last = context.history[-1] if context.history else None
    return (
        value,
        float(top[0]),
        float(top[0] - top[1]) if len(top) > 1 else 1.0,
        progress.share,
        min(len(progress.open), 5) / 5,
        min(progress.stray_count, 3) / 3,
        min(len(context.history), 15) / 15,
        math.log1p(len(lexical)) / 5,
        float(any(step.observation.fingerprint == situation.fingerprint for step in context.history)),
        float(last is not None and last.observation.fingerprint == situation.fingerprint),
        float(len(context.tried) > 0),
        1.0 if context.steps_left is None else min(context.steps_left, 15) / 15,
    )


def _ragged(lists: Sequence[Sequence[int]]) -> Ragged:
    import numpy as np

    starts = np.cumsum([0, *(len(each) for each in lists[:-1])]).astype(np.int32)
    return Ragged(np.fromiter((row for each in lists for row in each), np.int32), starts)


def _crosses(said: Sequence[int], properties: Sequence[Sequence[int]]) -> Ragged:
    """Return the rows of all pairs of a word of the instruction and a property, for each candidate."""
    import numpy as np

    words_, table = np.array(said, np.uint64), np.array(properties, np.uint64)
    mixed = (table[:, :, None] * np.uint64(0x9E3779B1) + words_ * np.uint64(0x85EBCA77)) & np.uint64(0xFFFFFFFF)
    rows = ((mixed ^ (mixed >> np.uint64(15))) % np.uint64(CROSSES)).astype(np.int32).reshape(len(table), -1)
    return Ragged(rows.ravel(), np.arange(0, rows.size, rows.shape[1], dtype=np.int32))


_MOST = 6
"""Most elements that lead to another one."""
_NUMBER = re.compile(r"[-+]?\d{1,12}(?:\.\d{1,6})?")


def leads(items: Sequence[Item]) -> list[str]:
    """Return for each element the labels between its run of neighbours of the same role and the one before it.

    In a flat list of records, as a picture's row of buttons after a name, that is the record that an element belongs to.
    """
    found, before = [""] * len(items), dict[str, int]()
    for index, item in enumerate(items):
        last = before.get(item.role, -1)
        if last == index - 1 and last >= 0:
            found[index] = found[last]
        else:
            between = items[max(last + 1, index - _MOST) : index]
            found[index] = " ".join(each.label for each in between if each.label and not each.echo)
        before[item.role] = index
    return found


def numeric(label: str) -> float | None:
    """Return the number that a label consists of. None if it is not a number."""
    return float(label) if _NUMBER.fullmatch(label.strip()) else None


def inversion(one: Item, other: Item) -> float:
    """Return 1 for two numbers in falling order, -1 for rising order, and 0 if they are equal or not numbers."""
    first, second = sorted((one, other), key=lambda item: item.index)
    a, b = numeric(first.label), numeric(second.label)
    return 0.0 if a is None or b is None else float(a > b) - float(a < b)


def order(items: Sequence[Item]) -> str:
    """Return whether the numbers of the first role that has more than two are rising or falling; empty if neither."""
    by_role: dict[str, list[float]] = {}
    for item in items:
        if not item.echo and item.role not in WIDGETS and (value := numeric(item.label)) is not None:
            by_role.setdefault(item.role, []).append(value)
    for values in by_role.values():
        if len(values) > 2:
            return "rising" if values == sorted(values) else "falling" if values == sorted(values, reverse=True) else ""
    return ""


def asked_count(items: Sequence[Item], said: Sequence[str]) -> str:
    """Return how many elements have the most words of an instruction in their label, as a number to compare labels with."""
    asked = {stem(word) for word in said}
    shares = [len(asked & {stem(word) for word in words(item.label)}) for item in items if not (item.echo or item.role in WIDGETS)]
    most = max(shares, default=0)
    return str(shares.count(most)) if most else ""
