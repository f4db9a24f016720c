"""The element that a recorded action was taken on, found again in another observation of its page.

An element is its role, its name, its toggles and the words of the row that it is in, as in `exact.environments.browser.observe.refind`,
but by observations alone, which are all that a journal has. Two observations are compared by the marks of their elements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from urllib.parse import parse_qsl, urlsplit

from exact.observation import Element, Observation, places

_ROWS = frozenset(("row", "listitem", "dialog", "alertdialog", "article", "treeitem"))
"""Roles of parts whose words say which of several their controls belong to."""
_TEXTS = frozenset(("StaticText", "cell", "gridcell", "heading", "rowheader", "link"))
"""Roles of elements whose name is their text."""
_TOGGLES = ("checked", "mixed", "pressed", "expanded", "collapsed", "disabled")
_NOTICES = ("alert", "alertdialog", "dialog")
"""Roles of elements that say something new. A page that has one more of them is another page."""
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
ENOUGH = 0.5
"""Least share of the marks of one observation that another one has, if both are of one page."""

Mark = tuple[str, str, tuple[str, ...]]
"""Role, value or else name, and toggles of an element."""
_Words = Callable[[str], str]
"""Returns the part of a name that is compared."""


def find_again(then: Observation, id: str, now: Observation) -> str | None:
    """Return the id of the one element that an element of an earlier observation still is; None if there is none, or several.

    Numbers in names do not count if no element has the same ones.
    """
    at = next((index for index, each in enumerate(then.elements) if each.id == id), None)
    if at is None:
        return None
    for words in (_exact, _numberless):
        row = _words_around(then.elements, at, words)
        twins, found = (_like(then.elements[at], row, each.elements, words) for each in (then, now))
        if len(found) == 1 == len(twins):
            return now.elements[found[0]].id
        if found:
            return _by_place(then, twins, at, now, found)
    return None


def _like(meant: Element, row: Counter[tuple[str, str]], elements: Sequence[Element], words: _Words) -> list[int]:
    """Return the indices of the elements with the role, name and toggles of one, in a row that has all words of its row."""
    wanted = meant.role, words(meant.name), _toggles(meant)
    alike = (i for i, each in enumerate(elements) if each.role == meant.role and (each.role, words(each.name), _toggles(each)) == wanted)
    return [index for index in alike if row <= _words_around(elements, index, words)]


def _by_place(then: Observation, twins: Sequence[int], at: int, now: Observation, found: Sequence[int]) -> str | None:
    """Return the id of the one of several equal elements that has the place of element `at`; None if no place tells them apart."""
    if len(found) != len(twins):
        return None
    place = places(then.elements, [then.elements[index].id for index in twins]).get(then.elements[at].id)
    known = places(now.elements, [now.elements[index].id for index in found])
    return next((id for id, each in known.items() if place is not None and each == place), None)


def row_of(seen: Observation, id: str) -> tuple[str, str] | None:
    """Return the role of the row that an element is in, and a text that only this one of the rows with such an element has.

    None if the element is alone, or no text of its row tells it from the others.
    """
    elements = seen.elements
    at = next(index for index, each in enumerate(elements) if each.id == id)
    alike = [i for i, each in enumerate(elements) if (each.role, each.name) == (elements[at].role, elements[at].name)]
    rows = {index: _row(elements, index) for index in alike}
    own = rows[at]
    if len(alike) < 2 or own is None or elements[own].role not in ("row", "listitem", "article"):
        return None
    others = "\n".join(name for i, row in rows.items() if i != at and row is not None for _, name in _inside(elements, row, i)).casefold()
    texts = (name for role, name in _inside(elements, own, at) if role in _TEXTS and name.strip())
    told = next((name for name in texts if name.casefold() not in others), None)
    return None if told is None else (elements[own].role, told)


def marks(seen: Observation) -> Counter[Mark]:
    """Return the marks of all elements."""
    return Counter((each.role, each.value or each.name, _toggles(each)) for each in seen.elements)


def is_same_page(then: Observation, now: Observation) -> bool:
    """Return whether two observations are of one page: address, most of its elements, and no new alert or dialog."""
    before, after = marks(then), marks(now)
    alarms = sum(count for (role, *_), count in (after - before).items() if role in _NOTICES)
    return address(then.url) == address(now.url) and not alarms and (before & after).total() >= ENOUGH * before.total()


def came(before: Observation, after: Observation) -> Counter[Mark]:
    """Return the marks that a step brought."""
    return marks(after) - marks(before)


def did_the_same(before: Observation, after: Observation, now: Observation, then_came: Observation) -> bool:
    """Return whether a step from `now` to `then_came` brought most of what a step from `before` to `after` brought, at its address."""
    brought = came(before, after)
    shared = (brought & came(now, then_came)).total()
    return address(after.url) == address(then_came.url) and shared > 0 and shared >= ENOUGH * brought.total()


def address(url: str) -> tuple[object, ...]:
    """Return the parts of an address that name a page: the values in its query do not."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return (url,)
    names = tuple(sorted({name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}))
    return parts.scheme, parts.netloc, parts.path, names, parts.fragment


def _words_around(elements: Sequence[Element], at: int, words: _Words) -> Counter[tuple[str, str]]:
    """Return roles and names of the other elements in the row of an element; empty if it is in none."""
    row = _row(elements, at)
    return Counter() if row is None else Counter((role, words(name)) for role, name in _inside(elements, row, at) if name.strip())


def _row(elements: Sequence[Element], at: int) -> int | None:
    """Return the index of the nearest row around an element."""
    depth = elements[at].depth
    for index in range(at - 1, -1, -1):
        if elements[index].depth < depth:
            depth = elements[index].depth
            if elements[index].role in _ROWS:
                return index
    return None


def _inside(elements: Sequence[Element], row: int, apart: int) -> list[tuple[str, str]]:
    """Return roles and names of the elements in a row, without element `apart`."""
    found = list[tuple[str, str]]()
    for index in range(row + 1, len(elements)):
        if elements[index].depth <= elements[row].depth:
            break
        if index != apart:
            found.append((elements[index].role, elements[index].name))
    return found


def _toggles(element: Element) -> tuple[str, ...]:
    return tuple(each for each in element.states if each in _TOGGLES)


def _exact(name: str) -> str:
    return name


def _numberless(name: str) -> str:
    return _NUMBER.sub("0", name)
