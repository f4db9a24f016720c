"""The tree of a desktop, as an application tells it."""

from __future__ import annotations

from typing import Any, cast

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import Accessibility, AccessibleNode, ObjectCall
from exact.environments.desktop.tree import DesktopTree, Seen

CELL, TABLE, WINDOW = 56, 55, 23


class Bus:
    """A bus with one application, whose objects all have a place on the screen and no text."""

    def __init__(self, nodes: list[AccessibleNode]) -> None:
        self._nodes = nodes

    def nodes(self, applications: list[str]) -> dict[str, list[AccessibleNode]]:
        return dict.fromkeys(applications, self._nodes)

    def ask(self, questions: list[ObjectCall]) -> list[Any]:
        return [((10, 10, 20, 20),) if each.method == "GetExtents" else None for each in questions]


def node(name: str, parent: str, role: int, states: int = 0) -> AccessibleNode:
    shown = roles.SHOWING | roles.VISIBLE | roles.SENSITIVE | roles.ENABLED
    return AccessibleNode((":1", name), (":1", parent), 0, frozenset({"Component"}), name, role, shown | states)


def seen(row: int, part: int) -> Seen:
    """Return what is seen of a table with one cell that has one part, with these states."""
    nodes = [
        node("app", "", roles.APPLICATION), node("files", "app", WINDOW), node("list", "files", TABLE),
        node("name", "list", CELL, row), node("icon", "name", CELL, part),
    ]  # fmt: skip
    return DesktopTree(cast("Accessibility", Bus(nodes)), str, lambda *_: False).look([":1"])


def test_the_focus_of_a_cell_is_told_and_that_of_its_parts_is_not() -> None:
    found = seen(roles.FOCUSED, roles.FOCUSED)
    assert ["focused" in each.states for each in found.elements if each.role == "cell"] == [True, False]
    assert found.fingerprint == seen(roles.FOCUSED, 0).fingerprint != seen(0, 0).fingerprint
