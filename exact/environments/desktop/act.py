"""One action, carried out by pointer and keys. What does not fit the present state is refused before anything is touched."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import NamedTuple

from exact.action import Action
from exact.environments.desktop.accessibility import Accessibility, Question, property_of
from exact.environments.desktop.roles import FIELDS, MENU, WINDOWS
from exact.environments.desktop.screen import BUTTONS, Screen, Window
from exact.environments.desktop.tree import Seen
from exact.errors import ActionError
from exact.observation import Element

_NOTCHES = 8
"""Of the wheel: most of a window."""
_STEPS = 5
"""Movements of a drag, so that what is dragged notices."""

Point = tuple[float, float]


class Body(NamedTuple):
    """What an action is carried out with, and what was seen last."""

    screen: Screen
    bus: Accessibility
    seen: Seen
    rest: Callable[[], object]
    """Waits until the desktop is at rest."""
    wait: Callable[[], object]
    """Waits until something changes."""


def act(body: Body, action: Action) -> None:
    """Carry it out. Raises ActionError where the desktop is as it was."""
    screen, args = body.screen, action.args
    match action.name:
        case "click" | "double_click" | "right_click" | "hover":
            screen.move(*_reach(body, action, *action.elements))
            if action.name != "hover":
                screen.click(3 if action.name == "right_click" else 1, 2 if action.name == "double_click" else 1)
        case "fill":
            _fill(body, action)
        case "select":
            _select(body, action)
        case "drag":
            _drag(body, _reach(body, action, action.elements[0]), _reach(body, action, action.elements[1]))
        case "scroll":
            screen.scroll(0, _NOTCHES if args[0] == "up" else -_NOTCHES)
        case "type":
            _type(body, str(args[0]))
        case "press":
            screen.keyboard.press(str(args[0]))
        case "wait":
            body.wait()
        case _:
            _by_point(body, action)


def _by_point(body: Body, action: Action) -> None:
    """The actions of `computer_13` that no others share."""
    screen, args = body.screen, action.args
    numbers = [int(each) for each in args if isinstance(each, float)]
    if action.name in ("move_to", "click_at", "right_click_at", "double_click_at", "drag_to"):
        point = _on_screen(screen, action, numbers)
        if action.name == "drag_to":
            _drag(body, screen.pointer(), point)
            return
        screen.move(*point)
    match action.name:
        case "click_at" | "double_click_at":
            screen.click(1, 2 if action.name == "double_click_at" else 1)
        case "right_click_at":
            screen.click(3)
        case "click_here":
            screen.click(BUTTONS[str(args[0])], numbers[0])
        case "mouse_down":
            screen.press(BUTTONS[str(args[0])])
        case "mouse_up":
            screen.release(BUTTONS[str(args[0])])
        case "scroll_by":
            screen.scroll(numbers[0], numbers[1])
        case "key_down":
            screen.keyboard.hold(str(args[0]))
        case "key_up":
            screen.keyboard.release(str(args[0]))


def _fill(body: Body, action: Action) -> None:
    field = _there(body.seen, action, action.elements[0])
    if field.role not in FIELDS or "readonly" in field.states:
        raise ActionError(f"{action}: {_told(field)} is no field that can be written in: fields: {_some(body.seen, FIELDS)}")
    body.screen.move(*_reach(body, action, field.id))
    body.screen.click()
    body.rest()
    body.screen.keyboard.press("Control+a")
    body.screen.keyboard.press("Delete")
    if text := str(action.args[1]):
        body.rest()
        _type(body, text, field)


def _type(body: Body, text: str, field: Element | None = None) -> None:
    """By the keyboard where it has all keys; else by the field's own means, for giving keys other symbols is slow and may be missed.

    `field`: what has the focus; by default what had it last.
    """
    keyboard, ready = body.screen.keyboard, [each for each in body.seen.elements if each.role in FIELDS and "focused" in each.states]
    target = field or (ready[0] if ready and "readonly" not in ready[0].states else None)
    if keyboard.has(text) or target is None:
        keyboard.type(text, body.rest)
        return
    ref, editable, plain = body.seen.refs[target.id], "org.a11y.atspi.EditableText", "org.a11y.atspi.Text"
    caret, selected = body.bus.ask([property_of(ref, "Text", "CaretOffset"), Question(ref, plain, "GetSelection", "i", (0,))])
    begin, end = (int(selected[0]), int(selected[1])) if selected and selected[1] > selected[0] else (0, 0)
    place = begin if end else int(caret[0][1]) if caret else 0
    cut = [Question(ref, editable, "DeleteText", "ii", (begin, end))] if end else []
    insert = Question(ref, editable, "InsertText", "isi", (place, text, len(text.encode())))
    *_, done, _ = body.bus.ask([*cut, insert, Question(ref, plain, "SetCaretOffset", "i", (place + len(text),))])
    if not (done and done[0]):
        keyboard.type(text, body.rest)


def _select(body: Body, action: Action) -> None:
    """By the list's own means, so that it need not be open."""
    holder, label = _there(body.seen, action, action.elements[0]), str(action.args[1])
    ref = body.seen.refs[holder.id]
    (inside,) = body.bus.ask([Question(ref, "org.a11y.atspi.Accessible", "GetChildren")])
    options = [tuple(each) for each in inside[0]] if inside else []
    if holder.role == "combobox" and len(options) == 1:  # a menu, whose items are the options
        (inside,) = body.bus.ask([Question((options[0][0], options[0][1]), "org.a11y.atspi.Accessible", "GetChildren")])
        options = [tuple(each) for each in inside[0]] if inside else []
    properties = "org.freedesktop.DBus.Properties"
    asked = [Question((at[0], at[1]), properties, "Get", "ss", ("org.a11y.atspi.Accessible", "Name")) for at in options]
    names = [str(answer[0][1]) if answer else "" for answer in body.bus.ask(asked)]
    if label not in names:
        near = difflib.get_close_matches(label, names, n=1, cutoff=0.0)
        hint = f"did you mean {near[0]!r}? It has: {', '.join(map(repr, names[:20]))}" if near else "it has no options: click it"
        raise ActionError(f"{action}: {_told(holder)} has no option {label!r}: {hint}")
    (done,) = body.bus.ask([Question(ref, "org.a11y.atspi.Selection", "SelectChild", "i", (names.index(label),))])
    if not (done and done[0]):
        raise ActionError(f"{action}: {_told(holder)} does not let an option be chosen this way: click it, then the option")


def _drag(body: Body, begin: Point, end: Point) -> None:
    screen = body.screen
    screen.move(*begin)
    screen.press(1)
    for step in range(1, _STEPS + 1):
        screen.move(*(a + (b - a) * step / _STEPS for a, b in zip(begin, end, strict=True)))
        screen.sync()
    body.rest()
    screen.release(1)


def _there(seen: Seen, action: Action, id: str) -> Element:
    """The element of an id, if it can be used. Raises ActionError."""
    element = seen.element(id)
    if element is None:
        ids = [each.id for each in seen.elements]
        near = difflib.get_close_matches(id, ids, n=3, cutoff=0.5) or ids[:8]
        some = ", ".join(f"[{each}]" for each in near)
        raise ActionError(f"{action}: there is no element [{id}] now: it may have closed; there are {some}, ...")
    if "disabled" in element.states and action.name != "hover":
        raise ActionError(f"{action}: {_told(element)} is disabled: something else must be done first")
    return element


def _reach(body: Body, action: Action, id: str) -> Point:
    """The middle of what can be seen of an element, its window brought to the front where another one covers it. Raises ActionError."""
    element, seen = _there(body.seen, action, id), body.seen
    x, y, right, bottom = _clip(element, body)
    if right - x < 1 or bottom - y < 1:
        raise ActionError(f"{action}: {_told(element)} is outside the screen or scrolled out of view: scroll first, or use the keyboard")
    point = ((x + right) / 2, (y + bottom) / 2)
    if modal := _modal(seen, element):
        raise ActionError(f"{action}: {_told(element)} is behind the dialog {modal.name!r}: answer that first")
    if (menu := _open_menu(seen)) and element.role not in MENU:
        raise ActionError(f'{action}: the menu {menu.name!r} is open: choose from it, or press "Escape" first')
    title = seen.windows[id]
    if _covered(body.screen, title, point):
        window = next((each for each in reversed(body.screen.windows()) if each.title == title), None)
        if window is None:
            raise ActionError(f"{action}: {_told(element)} is covered by another window: close or move that first")
        body.screen.activate(window)
        body.rest()
    return point


def _open_menu(seen: Seen) -> Element | None:
    """The menu that is open, if one is: until it is closed, clicks elsewhere do nothing but close it."""
    above: list[Element] = []
    for each in seen.elements:
        above = [*(holder for holder in above if holder.depth < each.depth), each]
        holder = above[-2] if len(above) > 1 else None
        if each.role in MENU and holder and holder.role in ("menuitem", "menu"):
            return holder
    return None


def _covered(screen: Screen, title: str, point: Point) -> bool:
    """Whether something else than the window of a title is seen at a point. What pops up has no title, and covers nothing."""
    windows = screen.windows()
    owner, own = screen.at(*point), {each.pid for each in windows if each.title == title}
    above = [each for each in windows if each.pid in own and _holds(each, point)]
    behind = len(above) > 1 and above[-1].title != title and any(each.title == title for each in above)
    return behind or (bool(own) and owner not in (*own, -1))


def _clip(element: Element, body: Body) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of what lies on the screen and in the element's window."""
    width, height = body.screen.size
    box, found = element.box, _frame(body.seen, element)
    if box is None:
        return 0, 0, 0, 0
    left, top, right, bottom = max(box.x, 0), max(box.y, 0), min(box.x + box.width, width), min(box.y + box.height, height)
    if found and found.box and element.role not in WINDOWS:
        frame = found.box
        left, top = max(left, frame.x), max(top, frame.y)
        right, bottom = min(right, frame.x + frame.width), min(bottom, frame.y + frame.height)
    return left, top, right, bottom


def _frame(seen: Seen, element: Element) -> Element | None:
    """The window that an element is in; None for what pops up out of it."""
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
    """A dialog of the same application that must be answered before the element can be used."""
    window = seen.windows[element.id]
    dialogs = [each for each in seen.elements if each.role in WINDOWS and "modal" in each.states]
    own = [each for each in dialogs if seen.owners[each.id] == seen.owners[element.id]]
    return next((each for each in own if seen.windows[each.id] != window), None)


def _holds(window: Window, point: Point) -> bool:
    x, y, width, height = window.box
    return x <= point[0] < x + width and y <= point[1] < y + height


def _on_screen(screen: Screen, action: Action, point: list[int]) -> Point:
    width, height = screen.size
    if not (point[0] < width and point[1] < height):
        raise ActionError(f"{action} is outside the screen of {width} x {height} pixels")
    return point[0], point[1]


def _told(element: Element) -> str:
    return f"[{element.id}] {element.role}" + (f" {element.name!r}" if element.name else "")


def _some(seen: Seen, kinds: frozenset[str]) -> str:
    return ", ".join(_told(each) for each in seen.elements if each.role in kinds and "readonly" not in each.states) or "none is there now"
