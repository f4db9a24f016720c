"""Superlatives: the element with the greatest or least number.

Part of the built-in agent, which is not a language model.
"""

from __future__ import annotations

import functools
import re

from exact.agents.builtin.language.lexical import vocabulary, words
from exact.agents.builtin.language.subgoals import Subgoal
from exact.agents.builtin.page.page import FIELDS, Item, PageModel

_MOST = vocabulary("greatest largest biggest highest most maximum longest latest oldest")
_LEAST = vocabulary("smallest lowest least minimum shortest cheapest earliest fewest youngest")
_DURATION = re.compile(r"(\d+)\s*h(?:ours?)?\s*(\d+)?\s*m?")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def superlative(subgoal: Subgoal) -> str:
    """Return the superlative among the subgoal's words, or an empty string."""
    return next((word for word in words(subgoal.clause) if word in _MOST | _LEAST), "")


@functools.lru_cache(maxsize=512)
def superlative_item(subgoal: Subgoal, page: PageModel) -> Item | None:
    """Return the element that the subgoal's superlative means, or None if there is no superlative or nothing to compare."""
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
