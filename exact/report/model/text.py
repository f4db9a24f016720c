"""Text from pages and models on its way into a report: made visible, shortened, and stored once."""

from __future__ import annotations

import json
import re
from itertools import islice

from exact.action import Action
from exact.observation import Observation, places
from exact.reflection.record import action_label
from exact.text import UNSEEN, inert

LABEL = 140
"""Maximum length of an action in words, in characters."""
LINE = 600
"""Maximum length of a reason, a URL or a title, in characters."""

_REFERENCE = re.compile(r'"(?:[^"\\]|\\.)*"|\[([\w:.-]+)\]')
_ESCAPED = re.compile(r'[<>&"\\\n\t]')


def one_line(text: str, limit: int = LINE) -> str:
    """Return inert text without line breaks."""
    return inert(" ".join(text[: 4 * limit].split()), limit)


def in_words(action: Action | str, seen: Observation | None, limit: int = LABEL) -> str:
    """Return an action with each element's role, name and place beside its id, such as `click [3] button "Ok"`.

    seen: the observation in which it is taken.
    """
    known = places(seen.elements, _REFERENCE.findall(str(action))) if seen else {}

    def named(match: re.Match[str]) -> str:
        element = seen.element(match[1]) if match[1] and seen else None
        if element is None:
            return match[0]
        name = one_line(element.name, 40)
        words = (match[0], element.role, json.dumps(name, ensure_ascii=False) if name else "", known.get(element.id, ""))
        return " ".join(filter(None, words))

    return one_line(_REFERENCE.sub(named, str(action)[: 8 * limit]), limit)


def by_name(action: Action | str, seen: Observation | None, limit: int = LABEL) -> str:
    """Return an action with role, name and place of each element in place of its id, such as `click button "Ok"`."""
    return one_line(action_label(action, seen) if seen else str(action), limit)


class Texts:
    """Store of long texts, each kept once and named by a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> int | None:
        """Store a text. Return its number; None for an empty text."""
        return self._numbers.setdefault(text, len(self._numbers)) if text else None

    def __len__(self) -> int:
        return len(self._numbers)

    def since(self, number: int, longest: int) -> tuple[str, ...]:
        """Return the texts from a number on, inert, each cut at `longest` characters."""
        return tuple(inert(text, longest) for text in islice(self._numbers, number, None))

    def within(self, total: int) -> tuple[str, ...]:
        """Return all texts in order of their numbers, inert, the longest cut so that together they take about `total` bytes of JSON."""
        weights = [_weight(text) for text in self._numbers]
        cap = share(weights, total)
        return tuple(_cut(text, cap, weight) for text, weight in zip(self._numbers, weights, strict=True))


def share(sizes: list[int], total: int) -> int:
    """Return the cap under which the sizes, each cut to it, sum to at most `total`; None if nothing needs cutting."""
    left = total
    for place, size in enumerate(sorted(sizes)):
        fair = left // (len(sizes) - place)
        if size > fair:
            return fair
        left -= size
    return max(sizes, default=0)


def _weight(text: str) -> int:
    return len(text.encode()) + 5 * len(_ESCAPED.findall(text)) + 7 * len(UNSEEN.findall(text))


def _cut(text: str, cap: int, weight: int) -> str:
    if weight <= cap:
        return inert(text)
    kept = len(text) * cap // weight
    return inert(text[:kept]) + f"\n… {len(text) - kept:,} more characters are in the run's folder"
