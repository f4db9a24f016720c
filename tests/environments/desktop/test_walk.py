"""Objects beyond the cache, as an application tells them that lies."""

from __future__ import annotations

from typing import Any, cast

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import Accessibility, AccessibleNode, ObjectCall
from exact.environments.desktop.walk import completed, with_open_menus


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


class Menus:
    """A bus with one object that shows, among hidden ones, and a count of what each was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def ask(self, questions: list[ObjectCall]) -> list[Any]:
        self.asked += [each.ref[1] for each in questions]
        return [self._answer(each) for each in questions]

    def _answer(self, question: ObjectCall) -> Any:
        match question.method:
            case "GetChildren":
                return ([(":1", f"item {at}") for at in range(50)],)
            case "GetState":
                return ((roles.SHOWING if question.ref[1] == "item 3" else 0, 0),)
            case "GetInterfaces":
                return (["org.a11y.atspi.Component"],)
            case "GetRole":
                return (roles.PASSWORD,)
            case _:
                return (("i", 0) if question.arguments[1] == "ChildCount" else ("s", "told"),)


def test_hidden_objects_are_asked_for_their_states_alone() -> None:
    bus, holder = Menus(), menu("holder", "", roles.SHOWING)._replace(children=50)
    found = completed(cast("Accessibility", bus), {":1": [holder]})
    assert [node.ref[1] for node in found[":1"]] == ["holder", "item 3"]
    assert bus.asked.count("item 2") == 1 and bus.asked.count("item 3") > 1
