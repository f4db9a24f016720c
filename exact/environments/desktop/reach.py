"""The position and reachability of an element. Actions that do not fit are refused with the way out."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import NamedTuple

from exact.action import Action
from exact.environments.desktop.accessibility import Accessibility
from exact.environments.desktop.roles import MENU, WINDOWS
from exact.environments.desktop.screen import Screen, TopLevelWindow
from exact.environments.desktop.tree import Seen
from exact.errors import ActionError
from exact.observation import Element

Point = tuple[float, float]


class DesktopContext(NamedTuple):
    """Context of an action: its means, and the last observation."""

    screen: Screen
    bus: Accessibility
    seen: Seen
    rest: Callable[[], object]
    """Callable that waits until the desktop is idle."""
    wait: Callable[[], object]
    """Callable that waits until something changes."""


def there(seen: Seen, action: Action, id: str) -> Element:
    """Return the element of an id if it can be used. Raises ActionError."""
    element = seen.element(id)
    if element is None:
        ids = [each.id for each in seen.elements]
        near = difflib.get_close_matches(id, ids, n=3, cutoff=0.5) or ids[:8]
        some = ", ".join(f"[{each}]" for each in near)
        raise ActionError(f"{action}: there is no element [{id}] now: it may have closed; there are {some}, ...")
    if "disabled" in element.states and action.name != "hover":
        raise ActionError(f"{action}: {describe(element)} is disabled: something else must be done first")
    return element


def reach(context: DesktopContext, action: Action, id: str) -> Point:
    """Return the middle of an element's visible part; bring its window to the front if another one covers it. Raises ActionError."""
    element, seen = there(context.seen, action, id), context.seen
    x, y, right, bottom = _clip(element, context)
    if right - x < 1 or bottom - y < 1:
        raise ActionError(f"{action}: {describe(element)} is outside the screen or scrolled out of view: scroll first, or use the keyboard")
    point = ((x + right) / 2, (y + bottom) / 2)
    if modal := _modal(seen, element):
        raise ActionError(f"{action}: {describe(element)} is behind the dialog {modal.name!r}: answer that first")
    if (menu := _open_menu(seen)) and element.role not in MENU:
        raise ActionError(f'{action}: the menu {menu.name!r} is open: choose from it, or press "Escape" first')
    title = seen.windows[id]
    if _covered(context.screen, title, point):
        window = next((each for each in reversed(context.screen.windows()) if each.title == title), None)
        if window is None:
            raise ActionError(f"{action}: {describe(element)} is covered by another window: close or move that first")
        context.screen.activate(window)
        context.rest()
        if context.screen.is_desktop(window) and _covered(context.screen, title, point):
            raise ActionError(f"{action}: {describe(element)} is covered by another window: close or move that first")
    return point


def _open_menu(seen: Seen) -> Element | None:
    """Return the open menu, if there is one: clicks elsewhere only close it."""
    above: list[Element] = []
    for each in seen.elements:
        above = [*(holder for holder in above if holder.depth < each.depth), each]
        holder = above[-2] if len(above) > 1 else None
        if each.role in MENU and holder and holder.role in ("menuitem", "menu"):
            return holder
    return None


def _covered(screen: Screen, title: str, point: Point) -> bool:
    """Return whether another window than that of a title is visible at a point. A popup has no title and covers nothing."""
    windows = screen.windows()
    owner, own = screen.at(*point), {each.pid for each in windows if each.title == title}
    above = [each for each in windows if each.pid in own and _holds(each, point)]
    behind = len(above) > 1 and above[-1].title != title and any(each.title == title for each in above)
    return behind or (bool(own) and owner not in (*own, -1))


def _clip(element: Element, context: DesktopContext) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of the part that lies on the screen and in the element's window."""
    width, height = context.screen.size
    box, found = element.box, _frame(context.seen, element)
    if box is None:
        return 0, 0, 0, 0
    left, top, right, bottom = max(box.x, 0), max(box.y, 0), min(box.x + box.width, width), min(box.y + box.height, height)
    if found and found.box and element.role not in WINDOWS:
        frame = found.box
        left, top = max(left, frame.x), max(top, frame.y)
        right, bottom = min(right, frame.x + frame.width), min(bottom, frame.y + frame.height)
    return left, top, right, bottom


def _frame(seen: Seen, element: Element) -> Element | None:
    """Return the window of an element; None for a popup."""
    found = None
    for each in seen.elements:
        if each.depth == 0:
            found = each
        if each.id == element.id:
            break
    box, inner = found and found.box, element.box
    inside = box and inner and inner.x < box.x + box.width and inner.y < box.y + box.height
    return None if element.role in MENU or not inside else found


def _modal(seen: Seen, element: Element) -> Element | None:
    """Return the dialog of the same application that must be answered before the element can be used."""
    window = seen.windows[element.id]
    dialogs = [each for each in seen.elements if each.depth == 0 and each.role in WINDOWS and "modal" in each.states]
    own = [each for each in dialogs if seen.owners[each.id] == seen.owners[element.id]]
    return next((each for each in own if seen.windows[each.id] != window), None)


def _holds(window: TopLevelWindow, point: Point) -> bool:
    x, y, width, height = window.box
    return x <= point[0] < x + width and y <= point[1] < y + height


def describe(element: Element) -> str:
    """Return an element as messages name it."""
    return f"[{element.id}] {element.role}" + (f" {element.name!r}" if element.name else "")
