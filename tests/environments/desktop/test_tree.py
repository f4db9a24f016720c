"""The tree of a desktop, as an application tells it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import Accessibility, AccessibleNode, ObjectCall
from exact.environments.desktop.tree import DesktopTree, Seen
from exact.observation import Box

CELL, TABLE, WINDOW, BUTTON, PANEL, COMBOBOX, OPTION = 56, 55, 23, 43, 39, 11, 32


class Bus:
    """A bus with one application, whose objects have no text. `boxes`: places on the screen, by path; by default the same one for all."""

    def __init__(self, nodes: list[AccessibleNode], toolkit: str = "", boxes: dict[str, tuple[int, int, int, int]] | None = None) -> None:
        self._nodes, self._toolkit, self._boxes = nodes, toolkit, boxes or {}

    def nodes(self, applications: list[str]) -> dict[str, list[AccessibleNode]]:
        return dict.fromkeys(applications, self._nodes)

    def ask(self, questions: list[ObjectCall]) -> list[Any]:
        return [self._answer(each) for each in questions]

    def _answer(self, question: ObjectCall) -> Any:
        if question.method == "GetExtents":
            return (self._boxes.get(question.ref[1], (10, 10, 20, 20)),)
        return (("s", self._toolkit),) if "ToolkitName" in question.arguments and self._toolkit else None


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


@pytest.mark.parametrize(("toolkit", "visible"), [("Qt", [True] * 5 + [False]), ("gtk", [True] * 6)])
def test_what_qt_has_scrolled_out_of_view_is_not_visible(toolkit: str, visible: list[bool]) -> None:
    nodes = [
        node("app", "", roles.APPLICATION), node("vlc", "app", WINDOW), node("", "vlc", PANEL), node("above", "", BUTTON),
        node("half", "", BUTTON), node("below", "", BUTTON), node("choice", "vlc", COMBOBOX), node("option", "choice", OPTION),
    ]  # fmt: skip
    nodes[2] = nodes[2]._replace(ref=(":1", "view"))
    nodes[3:6] = [each._replace(parent=(":1", "view")) for each in nodes[3:6]]
    boxes = {
        "vlc": (0, 0, 200, 300), "view": (10, 10, 180, 100), "above": (20, 20, 50, 20), "half": (20, 100, 50, 20),
        "below": (20, 140, 50, 20), "choice": (10, 0, 50, 10), "option": (10, 50, 50, 10),
    }  # fmt: skip
    found = DesktopTree(cast("Accessibility", Bus(nodes, toolkit, boxes)), str, lambda *_: False).look([":1"])
    assert [each.visible for each in found.elements] == visible
    if toolkit == "Qt":
        assert [each.box for each in found.elements[-2:]] == [Box(20, 100, 50, 10), None]
