"""Execution of one action by pointer and keys. An action that does not fit the present state is refused before any input is sent."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from exact.action import Action
from exact.environments.desktop.accessibility import ObjectCall, property_of
from exact.environments.desktop.reach import DesktopContext, Point, describe, reach, there
from exact.environments.desktop.roles import FIELDS
from exact.environments.desktop.screen import BUTTONS, Screen
from exact.environments.desktop.tree import Seen
from exact.errors import ActionError
from exact.observation import Element

_NOTCHES = 8
"""Wheel notches of one scroll: the greater part of a window."""
_STEPS = 5
"""Movements of a drag, so that the dragged object notices."""


def act(context: DesktopContext, action: Action) -> None:
    """Execute an action. Raises ActionError, which leaves the desktop unchanged."""
    screen, args = context.screen, action.args
    match action.name:
        case "click" | "double_click" | "right_click" | "hover":
            screen.move(*reach(context, action, *action.elements))
            if action.name != "hover":
                screen.click(3 if action.name == "right_click" else 1, 2 if action.name == "double_click" else 1)
        case "fill":
            _fill(context, action)
        case "select":
            _select(context, action)
        case "drag":
            _drag(context, reach(context, action, action.elements[0]), reach(context, action, action.elements[1]))
        case "scroll":
            screen.scroll(0, _NOTCHES if args[0] == "up" else -_NOTCHES)
        case "type":
            _type(context, str(args[0]))
        case "press":
            screen.keyboard.press(str(args[0]))
        case "wait":
            context.wait()
        case _:
            _by_point(context, action)


def act_in_turn(context: DesktopContext, events: Sequence[Action], look: Callable[[], Seen]) -> None:
    """Execute the input events of a program, each once the desktop is idle after the one before.

    `look` observes the target of a text. Raises ActionError.
    """
    for number, event in enumerate(events):
        if number:
            context.rest()
            context = context._replace(seen=look()) if event.name == "type" else context
        act(context, event)


def _by_point(context: DesktopContext, action: Action) -> None:
    """Execute an action that only `computer_13` has."""
    screen, args = context.screen, action.args
    numbers = [int(each) for each in args if isinstance(each, float)]
    if action.name in ("move_to", "click_at", "right_click_at", "double_click_at", "drag_to"):
        point = _on_screen(screen, action, numbers)
        if action.name == "drag_to":
            _drag(context, screen.pointer(), point)
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


def _fill(context: DesktopContext, action: Action) -> None:
    field = there(context.seen, action, action.elements[0])
    if field.role not in FIELDS or "readonly" in field.states:
        raise ActionError(f"{action}: {describe(field)} is no field that can be written in: fields: {_some(context.seen, FIELDS)}")
    context.screen.move(*reach(context, action, field.id))
    context.screen.click()
    context.rest()
    context.screen.keyboard.press("Control+a")
    context.screen.keyboard.press("Delete")
    if text := str(action.args[1]):
        context.rest()
        _type(context, text, field)


def _type(context: DesktopContext, text: str, field: Element | None = None) -> None:
    """Type by the keyboard if it has all keys, else through the field's interface, because remapping keys is slow and may be missed.

    field: the focused element; by default the last focused one.
    """
    keyboard, ready = context.screen.keyboard, [each for each in context.seen.elements if each.role in FIELDS and "focused" in each.states]
    target = field or (ready[0] if ready and "readonly" not in ready[0].states else None)
    if keyboard.has(text) or target is None:
        keyboard.type(text, context.rest)
        return
    ref, editable, plain = context.seen.refs[target.id], "org.a11y.atspi.EditableText", "org.a11y.atspi.Text"
    caret, selected = context.bus.ask([property_of(ref, "Text", "CaretOffset"), ObjectCall(ref, plain, "GetSelection", "i", (0,))])
    begin, end = (int(selected[0]), int(selected[1])) if selected and selected[1] > selected[0] else (0, 0)
    offset = begin if end else int(caret[0][1]) if caret else 0
    cut = [ObjectCall(ref, editable, "DeleteText", "ii", (begin, end))] if end else []
    insert = ObjectCall(ref, editable, "InsertText", "isi", (offset, text, len(text.encode())))
    *_, done, _ = context.bus.ask([*cut, insert, ObjectCall(ref, plain, "SetCaretOffset", "i", (offset + len(text),))])
    if not (done and done[0]):
        keyboard.type(text, context.rest)


def _select(context: DesktopContext, action: Action) -> None:
    """Select through the list's interface, which may be closed."""
    holder, label = there(context.seen, action, action.elements[0]), str(action.args[1])
    ref = context.seen.refs[holder.id]
    (inside,) = context.bus.ask([ObjectCall(ref, "org.a11y.atspi.Accessible", "GetChildren")])
    options = [tuple(each) for each in inside[0]] if inside else []
    if holder.role == "combobox" and len(options) == 1:  # a menu, whose items are the options
        (inside,) = context.bus.ask([ObjectCall((options[0][0], options[0][1]), "org.a11y.atspi.Accessible", "GetChildren")])
        options = [tuple(each) for each in inside[0]] if inside else []
    properties = "org.freedesktop.DBus.Properties"
    asked = [ObjectCall((at[0], at[1]), properties, "Get", "ss", ("org.a11y.atspi.Accessible", "Name")) for at in options]
    names = [str(answer[0][1]) if answer else "" for answer in context.bus.ask(asked)]
    if label not in names:
        near = difflib.get_close_matches(label, names, n=1, cutoff=0.0)
        hint = f"did you mean {near[0]!r}? It has: {', '.join(map(repr, names[:20]))}" if near else "it has no options: click it"
        raise ActionError(f"{action}: {describe(holder)} has no option {label!r}: {hint}")
    (done,) = context.bus.ask([ObjectCall(ref, "org.a11y.atspi.Selection", "SelectChild", "i", (names.index(label),))])
    if not (done and done[0]):
        raise ActionError(f"{action}: {describe(holder)} does not let an option be chosen this way: click it, then the option")


def _drag(context: DesktopContext, begin: Point, end: Point) -> None:
    screen = context.screen
    screen.move(*begin)
    screen.press(1)
    for step in range(1, _STEPS + 1):
        screen.move(*(a + (b - a) * step / _STEPS for a, b in zip(begin, end, strict=True)))
        screen.sync()
    context.rest()
    screen.release(1)


def _on_screen(screen: Screen, action: Action, point: list[int]) -> Point:
    width, height = screen.size
    if not (point[0] < width and point[1] < height):
        raise ActionError(f"{action} is outside the screen of {width} x {height} pixels")
    return point[0], point[1]


def _some(seen: Seen, kinds: frozenset[str]) -> str:
    return (
        ", ".join(describe(each) for each in seen.elements if each.role in kinds and "readonly" not in each.states) or "none is there now"
    )
