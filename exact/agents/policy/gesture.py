"""Gestures of the computer tools of OpenAI and Anthropic, in one form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from exact.errors import ActionError

Point = tuple[float, float]

WAYS = {(0, -1): "up", (0, 1): "down", (-1, 0): "left", (1, 0): "right"}
"""Directions by steps to the right and downwards."""

_KINDS = {
    **dict.fromkeys(("click", "left_click"), "click"),
    **dict.fromkeys(("double_click", "right_click", "scroll", "type", "wait", "screenshot"), ""),
    **dict.fromkeys(("move", "mouse_move"), "move"),
    **dict.fromkeys(("keypress", "key"), "press"),
    **dict.fromkeys(("drag", "left_click_drag"), "drag"),
    **dict.fromkeys(("left_mouse_down", "left_mouse_up"), "button"),
}
"""Gestures by the tools' names of them. Empty: the same name."""
_SIDE_BUTTONS = {"right": "right_click", "back": "back", "forward": "forward"}
_NOTCH = 100.0
"""Pixels that one notch of the wheel scrolls."""
_KEYS = {
    "minus": "-", "equal": "=", "period": ".", "comma": ",", "slash": "/", "backslash": "\\", "semicolon": ";", "apostrophe": "'",
    "bracketleft": "[", "bracketright": "]", "grave": "`", "prior": "PageUp", "next": "PageDown", "caps_lock": "CapsLock",
}  # fmt: skip
"""Names of keys by X11 that environments name otherwise."""
_KEYPAD = re.compile(r"kp_(?=\w)", re.I)


class Gesture(NamedTuple):
    """One gesture of a computer tool, in pixels of the screen."""

    kind: str
    points: tuple[Point, ...] = ()
    """Point aimed at; of a drag, its start and end."""
    text: str = ""
    """Text to type, keys to press, or the tool's name of the gesture."""
    moved: Point = (0.0, 0.0)
    """Notches of the wheel, to the right and downwards."""


def read_gesture(given: Mapping[str, Any], scale: Point = (1.0, 1.0)) -> Gesture:
    """Return the gesture that a tool's arguments describe, OpenAI's or Anthropic's. Raises ActionError for one that no environment has."""
    name = str(given.get("action") or given.get("type"))
    if name not in _KINDS:
        raise ActionError(f"the computer has no {name!r} here: click, double_click, right_click, drag, scroll, type, press keys, or wait")
    kind, text = _KINDS[name] or name, given.get("text")
    if kind in ("click", "double_click", "right_click", "drag", "move", "scroll") and (given.get("keys") or text):
        raise ActionError(f"{name} cannot be done with keys held: press keys on their own")
    if kind == "click":
        button = str(given.get("button") or "left")
        if button not in ("left", *_SIDE_BUTTONS):
            raise ActionError(f"there is no click with the {button} button: use left or right")
        kind = _SIDE_BUTTONS.get(button, kind)
    words = "+".join(map(str, given["keys"])) if isinstance(given.get("keys"), list) else str(text or "")
    return Gesture(kind, _points(given, scale), words if kind in ("type", "press") else name, _moved(given))


def _points(given: Mapping[str, Any], scale: Point) -> tuple[Point, ...]:
    path = given.get("path")
    found: list[Any] = [*path[:1], *path[1:][-1:]] if isinstance(path, list) else [given.get("start_coordinate"), given.get("coordinate")]
    found += [given] if "x" in given else []
    pairs: list[Any] = [(each.get("x"), each.get("y")) if isinstance(each, Mapping) else each for each in found if each is not None]
    try:
        return tuple((float(x) * scale[0], float(y) * scale[1]) for x, y in pairs)
    except (TypeError, ValueError):
        raise ActionError(f"a point is missing or is none in {dict(given)}: give x and y in pixels of the picture") from None


def _moved(given: Mapping[str, Any]) -> Point:
    try:
        if "scroll_direction" in given:
            right, down = next((way for way, name in WAYS.items() if name == given["scroll_direction"]), (0, 0))
            amount = float(given.get("scroll_amount") or 1)
            return right * amount, down * amount
        return float(given.get("scroll_x") or 0) / _NOTCH, float(given.get("scroll_y") or 0) / _NOTCH
    except (TypeError, ValueError):
        raise ActionError(f"{dict(given)} does not say how far to scroll: give a number") from None


def chord(text: str) -> str:
    """Return keys pressed together in the words of environments: `ctrl+Page_Down` as `ctrl+PageDown`. Raises ActionError for several."""
    if len(text.split()) > 1:
        raise ActionError(f"{text!r} presses several keys one after the other: press one, or keys together such as ctrl+a")
    names = [_KEYPAD.sub("", name) for name in (text.split("+") if len(text) > 1 else [text])]
    return "+".join(_KEYS.get(name.lower(), name.replace("_", "") if len(name) > 1 else name) for name in names)
