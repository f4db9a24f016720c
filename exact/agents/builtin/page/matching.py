"""Matching of elements with subgoals of the instruction.

Part of the built-in agent, which is not a language model.

Superlatives: the element with the greatest or least number.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

from exact.agents.builtin.language.lexical import STOP_WORDS, normalise, similarity, stem, vocabulary, words
from exact.agents.builtin.language.subgoals import SUBMIT_WORDS, Goal, Subgoal
from exact.agents.builtin.page.page import CHOICES, FIELDS, Item, PageModel

CONFIDENT = 0.75
"""Affinity from which an element is taken to be the intended one."""


@functools.lru_cache(maxsize=65536)
def affinity(subgoal: Subgoal, item: Item, page: PageModel) -> float:
    """Return how surely the subgoal means this element, in [0, 1]."""
    if subgoal.kind == "fill":
        return _field_affinity(subgoal, item, page)
    if (meant := superlative_item(subgoal, page)) is not None:
        return 0.85 if item is meant else 0.1
    score = max((similarity(target, item.label) for target in subgoal.targets), default=0.0)
    if _adds_only_handles(subgoal, item.label) and subgoal.literal:
        score = max(score, 0.8)
    if subgoal.verb:
        both = max((similarity(f"{subgoal.verb} {target}", item.label) for target in subgoal.targets), default=0.0)
        score = max(score, both, (0.81 if subgoal.targets else 0.85) * similarity(subgoal.verb, item.label))
    if item.unlabelled and item.nearby and item.role not in FIELDS:
        score = max(
            score, (0.82 if item.label in ("", "+") else 0.5) * max((similarity(t, item.nearby) for t in subgoal.targets), default=0.0)
        )
    if item.inert:
        score *= 0.75
    if item.role in CHOICES | {"combobox"} and item.element.value:
        score = max(score, max((0.8 * similarity(target, item.element.value) for target in subgoal.targets), default=0.0))
    fits = item.role in subgoal.roles
    if subgoal.ordinal and fits:
        return 0.95 if _is_nth(subgoal.ordinal, item, page) else 0.1 * score
    if fits and score < 0.3 and not is_submit(item):
        alone = page.counts.get(item.role, 0) == 1
        score = max(score, _role_affinity(subgoal, alone) + 0.1 * _is_pictured(item, page))
    elif subgoal.roles and score >= 0.3:
        score += 0.04 if fits else -0.04
    return min(max(score - (0.0 if item.widget else 0.03), 0.0), 1.0)


def ranked(subgoal: Subgoal, page: PageModel) -> list[tuple[float, Item]]:
    """Return the affinities of the elements that can be acted on, greatest first, equal ones in document order."""
    return sorted(((affinity(subgoal, item, page), item) for item in page.actable), key=lambda each: (-each[0], each[1].index))


def _adds_only_handles(subgoal: Subgoal, label: str) -> bool:
    """Return whether the label is a target followed only by handles: `Block @ann` for `Block`."""
    given = words(label)
    for target in subgoal.targets:
        wanted = words(target)
        if wanted and given[: len(wanted)] == wanted and 0 < len(given) - len(wanted) <= 2:
            return all(word[0] in "@#" for word in given[len(wanted) :])
    return False


def _is_pictured(item: Item, page: PageModel) -> bool:
    """Return whether a picture on the page shares a word with the element's label."""
    label = set(words(item.label))
    return bool(label) and any(label & set(words(other.label)) for other in page.items if other.role in ("graphics-symbol", "image", "img"))


def _role_affinity(subgoal: Subgoal, alone: bool) -> float:
    """Return the affinity of an element that matches by role only."""
    if not subgoal.targets:
        return 0.9 if alone else 0.5
    if subgoal.literal or subgoal.kind != "click":
        return 0.2
    return 0.6 if alone else 0.45


def _field_affinity(subgoal: Subgoal, item: Item, page: PageModel) -> float:
    if item.role not in FIELDS | {"combobox"}:
        return 0.0
    if "readonly" in item.element.states:
        return 0.05
    fields = [other for other in page.items if other.role in FIELDS and "disabled" not in other.element.states and not other.echo]
    if subgoal.ordinal:
        place = fields.index(item) + 1 if item in fields else 0
        return 0.95 if place == (subgoal.ordinal if subgoal.ordinal > 0 else len(fields)) else 0.1
    if subgoal.multiple:
        return 0.9
    named = max((similarity(target, item.label) for target in subgoal.targets), default=0.0)
    if len(fields) == 1:
        return max(0.9, named)
    rivals = max((similarity(target, other.label) for target in subgoal.targets for other in fields if other is not item), default=0.0)
    if named >= 0.3 and named >= rivals:
        return max(named, 0.8)
    if item.element.value and not subgoal.text:
        return 0.2  # the value to enter is elsewhere on the page, perhaps in this field
    return 0.25 if rivals >= 0.3 else 0.5


def _is_nth(ordinal: int, item: Item, page: PageModel) -> bool:
    return item.ordinal == (ordinal if ordinal > 0 else page.counts.get(item.role, 0))


def is_submit(item: Item) -> bool:
    """Return whether the element's label says that it submits a form."""
    return item.role in ("button", "link", "image", "img") and normalise(item.label) in SUBMIT_WORDS


@functools.lru_cache(maxsize=65536)
def mention_score(label: str, goal: Goal) -> float:
    """Return how surely the instruction mentions this label, in [0, 1]. Words that occur together and rare words count more."""
    inner = words(label)
    if not inner or all(word in STOP_WORDS for word in inner) or len(inner) > 12:
        return 0.0
    text = words(goal.instruction)
    for at in range(len(text) - len(inner) + 1):
        if text[at : at + len(inner)] == inner or tuple(map(stem, text[at : at + len(inner)])) == tuple(map(stem, inner)):
            return 1.0 if label.strip() in goal.literals or any(label.strip() in value for value in goal.literals) else 0.7
    common = {stem(w) for w in inner if w not in STOP_WORDS} & {stem(w) for w in text}
    return 0.6 * len(common) / len(inner)


@functools.lru_cache(maxsize=65536)
def proximity(item: Item, goal: Goal, page: PageModel) -> float:
    """Return the share of the instruction's values shown on the page that are near this element, in [0, 1]."""
    own = set(words(item.label))
    around = set(words(item.nearby)) - own
    shown = {word for value in goal.literals for word in words(value)} - own - STOP_WORDS
    shown &= page_words(page)
    return len(shown & around) / len(shown) if shown else 0.0


@functools.lru_cache(maxsize=256)
def page_words(page: PageModel) -> set[str]:
    """Return the words of the page outside the echo of the instruction."""
    return {word for item in page.items if not item.echo for word in words(item.element.name)}


_MOST = vocabulary("greatest largest biggest highest most maximum longest latest oldest")
_LEAST = vocabulary("smallest lowest least minimum shortest cheapest earliest fewest youngest")
_DURATION = re.compile(r"(\d+)\s*h(?:ours?)?\s*(\d+)?\s*m?")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def superlative(subgoal: Subgoal) -> str:
    """Return the superlative among the subgoal's words, or an empty string."""
    return next((word for word in words(subgoal.clause) if word in _MOST | _LEAST), "")


@functools.lru_cache(maxsize=512)
def superlative_item(subgoal: Subgoal, page: PageModel) -> Item | None:
    """Return the element that the subgoal's superlative means, or None without a superlative or without elements to compare."""
    word = superlative(subgoal)
    if not word:
        return None
    after = words(subgoal.clause.casefold().partition(word)[2])
    attribute = after[0] if after else ""
    found: dict[str, list[tuple[float, Item]]] = {}
    for item in page.actable:
        number = None if item.role in FIELDS else _amount(item, attribute)
        if number is not None:
            found.setdefault(item.role, []).append((number, item))
    rivals = max((some for some in found.values() if len({n for n, _ in some}) > 1), key=_weight, default=[])
    sign = 1 if word in _MOST else -1
    return max(rivals, key=lambda rival: (sign * rival[0], -rival[1].index), default=(0.0, None))[1]


def _weight(some: list[tuple[float, Item]]) -> tuple[bool, int]:
    return some[0][1].widget, len(some)


def _amount(item: Item, attribute: str) -> float | None:
    near = item.nearby.casefold()
    at = near.find(attribute) if attribute else -1
    if at >= 0 and (number := _number(near[at:])) is not None:
        return number
    number = _number(item.label)
    return number if number is not None else _number(near)


def _number(text: str) -> float | None:
    if match := _DURATION.search(text):
        return 60.0 * int(match[1]) + int(match[2] or 0)
    match_ = _NUMBER.search(text)
    return float(match_[0].replace(",", "")) if match_ else None
