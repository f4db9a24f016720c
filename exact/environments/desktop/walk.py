"""Objects that the cache of an application leaves out: cells, web content, and everything of toolkits without a cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from exact.environments.desktop import roles
from exact.environments.desktop.accessibility import (
    HUGE,
    Accessibility,
    AccessibleNode,
    ObjectCall,
    Ref,
    grouped,
    named,
    property_of,
    table_cells,
)
from exact.observation import Box

_DEEP = 40
"""Maximum levels below those in the cache."""
_MOST_CHILDREN = 300
"""Maximum number of children requested of one object."""
_MOST = 6000
"""Maximum number of objects that are requested."""
_NOWHERE = -(1 << 31)
"""Coordinate of an object that is not on the screen."""
_ACCESSIBLE = "org.a11y.atspi.Accessible"
_ITEMS = frozenset(number for number, word in roles.ROLES.items() if word in roles.MENU)
_LAID_OUT = frozenset(number for number, word in roles.ROLES.items() if word in roles.LAID_OUT)


Popup = Callable[[float, float], bool]
"""Whether a point of the screen lies in a popup, such as a menu."""


def completed(
    bus: Accessibility, cached: Mapping[str, Sequence[AccessibleNode]], popup: Popup = lambda x, y: True
) -> dict[str, list[AccessibleNode]]:
    """Return the objects of applications, by name on the bus, with those that their caches lack.

    An object that is not showing is not searched. Of a table that is too large to be listed, only the visible cells are requested.
    Raises Silent.
    """
    whole = {name: list(nodes) for name, nodes in cached.items()}
    roots = _roots(bus, [name for name, nodes in cached.items() if not nodes])
    for root in roots:
        whole[root.ref[0]].append(root)
    whole = {name: with_open_menus(bus, nodes, popup) for name, nodes in whole.items()}
    known = {node.ref for nodes in whole.values() for node in nodes}
    inside = Counter(node.parent for nodes in whole.values() for node in nodes)
    holders = [node for nodes in whole.values() for node in nodes if _lacks(node, inside[node.ref])]
    for _ in range(_DEEP):
        listed, huge = _by_size(bus, holders)
        wanted = [each for each in _children(bus, listed) if each[0] not in known][: max(0, _MOST - len(known))]
        known |= {ref for ref, *_ in wanted}
        found = [*_described(bus, wanted), *(cell for table in huge for cell in _cells(bus, table))]
        for node in found:
            whole[node.parent[0]].append(node)
        holders = [node for node in found if _lacks(node, 0)]
        if not holders:
            break
    return whole


def with_open_menus(bus: Accessibility, nodes: Sequence[AccessibleNode], popup: Popup) -> list[AccessibleNode]:
    """Return the objects of an application, with the items of open menus as showing.

    GTK 2 never marks an item so. Its place is that of its menu, open now or last: open if a popup is there.
    """
    inside = grouped(node for node in nodes if node.role in _ITEMS)
    menus = [node for node in nodes if node.role == roles.SUBMENU and node.states & roles.SHOWING]
    opened = set[Ref]()
    while menus := [each for each in menus if each.ref in inside and not any(item.states & roles.SHOWING for item in inside[each.ref])]:
        items = [item for menu in menus for item in inside[menu.ref] if item.states & roles.VISIBLE]
        firsts = list({item.parent: item for item in reversed(items)}.values())
        places = _placed(bus, firsts)
        placed = {item.parent for item, box in places.items() if popup(box.x + box.width / 2, box.y + box.height / 2)}
        found = _placed(bus, [item for item in items if item.parent in placed])
        menus = [item for item in found if item.role == roles.SUBMENU and item.ref not in opened]  # parents may be lied about
        opened |= {item.ref for item in found}
    return [node._replace(states=node.states | roles.SHOWING) if node.ref in opened else node for node in nodes]


def _placed(bus: Accessibility, items: Sequence[AccessibleNode]) -> dict[AccessibleNode, Box]:
    """Return the boxes of the objects that have a place on the screen."""
    answers = bus.ask([ObjectCall(item.ref, "org.a11y.atspi.Component", "GetExtents", "u", (0,)) for item in items])
    boxes = {item: Box(*map(float, answer[0])) for item, answer in zip(items, answers, strict=True) if answer}
    return {item: box for item, box in boxes.items() if box.x > _NOWHERE and box.width > 0}


def _roots(bus: Accessibility, names: Iterable[str]) -> list[AccessibleNode]:
    """Return the root objects of applications that have no cache."""
    return _described(bus, [((name, "/org/a11y/atspi/accessible/root"), ("", ""), 0) for name in names], hidden=True)


def _lacks(node: AccessibleNode, known: int) -> bool:
    """Return whether an object may have visible children that are not known."""
    if node.role == roles.APPLICATION:
        return node.children > known
    return bool(node.states & roles.SHOWING) and (node.children < 0 or node.children > known or node.role in _LAID_OUT)


def _by_size(bus: Accessibility, holders: Sequence[AccessibleNode]) -> tuple[list[AccessibleNode], list[AccessibleNode]]:
    """Return the objects whose children can be listed, and the tables whose children are too many."""
    unsure = [node.ref for node in holders if node.children < 0]
    asked = zip(unsure, bus.ask([property_of(ref, "Accessible", "ChildCount") for ref in unsure]), strict=True)
    counts = {ref: int(answer[0][1]) if answer else 0 for ref, answer in asked}
    huge = {node.ref for node in holders if counts.get(node.ref, node.children) > HUGE}
    return [node for node in holders if node.ref not in huge], [node for node in holders if node.ref in huge]


def _children(bus: Accessibility, holders: Sequence[AccessibleNode]) -> list[tuple[Ref, Ref, int]]:
    """Return the children of objects: reference, parent and position of each, once."""
    answers = bus.ask([ObjectCall(node.ref, _ACCESSIBLE, "GetChildren") for node in holders])
    found = {
        (str(name), str(path)): (holder.ref, at)
        for holder, answer in zip(holders, answers, strict=True)
        for at, (name, path) in enumerate(answer[0][:_MOST_CHILDREN] if answer else ())
    }
    return [(ref, *where) for ref, where in found.items()]


def _cells(bus: Accessibility, table: AccessibleNode) -> list[AccessibleNode]:
    """Return the visible cells of a table. All are of the first one's kind."""
    cells = table_cells(bus, table.ref)
    kind = _described(bus, [(cell.ref, table.ref, cell.position) for cell in cells[:1]], hidden=True)
    answers = bus.ask([call for cell in cells for call in (_name(cell.ref), ObjectCall(cell.ref, _ACCESSIBLE, "GetState"))])
    told = zip(cells, answers[::2], answers[1::2], strict=True)
    return [
        kind[0]._replace(ref=cell.ref, position=cell.position, name=str(name[0][1]), states=_bits(states), box=cell.box)
        for cell, name, states in told
        if kind and name and states
    ]


def _described(bus: Accessibility, wanted: Sequence[tuple[Ref, Ref, int]], hidden: bool = False) -> list[AccessibleNode]:
    """Return the objects that answer and are showing. `wanted`: object, parent and position of each. `hidden`: return all that answer.

    Their states are requested first: closed menus have hundreds of objects that are not showing.
    """
    states = bus.ask([ObjectCall(ref, _ACCESSIBLE, "GetState") for ref, _, _ in wanted])
    known = [(where, _bits(each)) for where, each in zip(wanted, states, strict=True) if each]
    known = [(where, bits) for where, bits in known if hidden or bits & roles.SHOWING]
    answers = bus.ask([call for (ref, _, _), _ in known for call in _about(ref)])
    size = len(_about(("", "")))
    found = [_node(where, bits, *answers[size * at : size * at + size]) for at, (where, bits) in enumerate(known)]
    return [node for node in found if node]


def _name(ref: Ref) -> ObjectCall:
    return property_of(ref, "Accessible", "Name")


def _bits(states: Any) -> int:
    return int(states[0][0] | states[0][1] << 32)


def _about(ref: Ref) -> list[ObjectCall]:
    return [
        _name(ref),
        property_of(ref, "Accessible", "Description"),
        property_of(ref, "Accessible", "ChildCount"),
        *(ObjectCall(ref, _ACCESSIBLE, method) for method in ("GetRole", "GetInterfaces")),
    ]


def _node(
    where: tuple[Ref, Ref, int], states: int, name: Any, description: Any, children: Any, role: Any, interfaces: Any
) -> AccessibleNode | None:
    if not (name and role and interfaces):
        return None
    ref, parent, position = where
    kinds = frozenset(str(each).rpartition(".")[2] for each in interfaces[0])
    count = int(children[0][1]) if children else 0
    text = named(str(name[0][1]), str(description[0][1]) if description else "")
    return AccessibleNode(ref, parent, position, kinds, text, int(role[0]), states, count)
