"""Objects beyond the cache, as an application tells them that lies."""

from __future__ import annotations

from typing import Any, cast

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import Accessibility, AccessibleNode, ObjectCall
from exact.environments.desktop.walk import with_open_menus


class Bus:
    """A bus whose objects all have a place on the screen."""

    def ask(self, questions: list[ObjectCall]) -> list[Any]:
        return [((10, 10, 20, 20),) for _ in questions]


def menu(name: str, parent: str, states: int) -> AccessibleNode:
    return AccessibleNode((":1", name), (":1", parent), 0, frozenset(), name, roles.SUBMENU, states)


def test_menus_that_claim_to_hold_each_other_end() -> None:
    nodes = [
        menu("bar", "", roles.SHOWING),
        menu("one", "bar", roles.VISIBLE),
        menu("two", "one", roles.VISIBLE),
        menu("one", "two", roles.VISIBLE),
    ]
    found = with_open_menus(cast("Accessibility", Bus()), nodes, lambda x, y: True)
    assert all(node.states & roles.SHOWING for node in found)
