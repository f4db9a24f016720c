"""OSWorld's own form of an action, `{"action_type": "CLICK", "parameters": {"x": 10, "y": 20}}`, as actions of exact."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from exact.action import Action
from exact.environments.desktop.grammar import COMPUTER_13
from exact.errors import ActionError

Kind = Literal[
    "MOVE_TO", "CLICK", "MOUSE_DOWN", "MOUSE_UP", "RIGHT_CLICK", "DOUBLE_CLICK", "DRAG_TO", "SCROLL", "TYPING", "PRESS", "KEY_DOWN",
    "KEY_UP", "HOTKEY", "WAIT", "FAIL", "DONE",
]  # fmt: skip


class _Parameters(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    x: float | None = None
    y: float | None = None
    dx: float = 0.0
    dy: float = 0.0
    button: Literal["left", "middle", "right"] = "left"
    num_clicks: int = 1
    text: str | None = None
    key: str | None = None
    keys: tuple[str, ...] = ()


class _ActionData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    action_type: Kind
    parameters: _Parameters = _Parameters()


def read_computer13(action_data: Mapping[str, Any] | str) -> tuple[Action, ...]:
    """Return the actions of COMPUTER_13 that it stands for: one, or two for a click of another kind at a point.

    Raises ActionError if it is none of the thirteen, nor WAIT, FAIL or DONE.
    """
    try:
        action = msgspec.convert({"action_type": action_data} if isinstance(action_data, str) else action_data, _ActionData)
    except msgspec.ValidationError as error:
        raise ActionError(f"{action_data!r} is no action of computer_13: {error}") from error
    kind, given = action.action_type, action.parameters
    match kind:
        case "CLICK" | "RIGHT_CLICK" | "DOUBLE_CLICK":
            return _click(kind, given)
        case "MOVE_TO" | "DRAG_TO":
            return (_made(kind.lower(), *_needed(kind, x=given.x, y=given.y)),)
        case "SCROLL":
            return (_made("scroll_by", given.dx, given.dy),)
        case "MOUSE_DOWN" | "MOUSE_UP":
            return (_made(kind.lower(), given.button),)
        case "TYPING":
            return (_made("type", *_needed(kind, text=given.text)),)
        case "PRESS" | "KEY_DOWN" | "KEY_UP":
            return (_made(kind.lower(), *_needed(kind, key=given.key)),)
        case "HOTKEY":
            return (_made("press", *_needed(kind, keys="+".join(given.keys) or None)),)
    return (_made({"WAIT": "wait", "FAIL": "fail"}[kind]) if kind != "DONE" else _made("stop", ""),)


def _click(kind: Kind, given: _Parameters) -> tuple[Action, ...]:
    button = "right" if kind == "RIGHT_CLICK" else given.button
    times = 2 if kind == "DOUBLE_CLICK" else given.num_clicks
    if given.x is None and given.y is None:
        return (_made("click_here", button, times),)
    point = _needed(kind, x=given.x, y=given.y)
    at = {("left", 1): "click_at", ("right", 1): "right_click_at", ("left", 2): "double_click_at"}.get((button, times))
    return (_made(at, *point),) if at else (_made("move_to", *point), _made("click_here", button, times))


def _needed(kind: Kind, **given: str | float | None) -> tuple[str | float, ...]:
    for name, value in given.items():
        if value is None:
            raise ActionError(f"{kind} needs {name}")
    return tuple(value for value in given.values() if value is not None)


def _made(name: str, *args: str | float) -> Action:
    return COMPUTER_13.action(name, *args)
