"""Relations between the elements of a page: what leads to an element, how numbers are ordered, and how many are asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exact.agents.builtin.language.lexical import stem, words
from exact.agents.builtin.page.page import WIDGETS, Item

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
    """Return the number that a label is. None if it is none."""
    return float(label) if _NUMBER.fullmatch(label.strip()) else None


def inversion(one: Item, other: Item) -> float:
    """Return 1 where two numbers stand in falling order, -1 in rising order, and 0 where they are equal or no numbers."""
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
