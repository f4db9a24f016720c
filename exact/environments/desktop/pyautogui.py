r"""Programs that move mouse and keyboard by `pyautogui`, as OSWorld's agents write them, read as input events. They are not run.

>>> read_pyautogui("import pyautogui\npyautogui.hotkey('ctrl', 's')", (1920, 1080))
(press "Control+s",)
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Sequence
from math import ceil
from typing import Any

from exact.action import Action
from exact.environments.desktop.grammar import COMPUTER_13
from exact.environments.desktop.program import Call, Interpreter, Value
from exact.errors import ActionError

MOST_SECONDS = 30.0
"""Maximum seconds that a program may wait in all."""
_MOST_EVENTS = 1_000
_SPECIAL = {"WAIT": ("wait",), "FAIL": ("fail",), "DONE": ("stop", "")}
_KEYS = {
    "return": "enter", "esc": "escape", "del": "delete", "pgup": "pageup", "pgdn": "pagedown", "pagedn": "pagedown", "up": "arrowup",
    "down": "arrowdown", "left": "arrowleft", "right": "arrowright", "win": "meta", "winleft": "meta", "winright": "meta",
    "super": "meta", "command": "meta", "option": "alt", "ctrlleft": "control", "ctrlright": "control", "shiftleft": "shift",
    "shiftright": "shift", "altleft": "alt", "altright": "alt", "apps": "contextmenu", "\n": "enter", "\r": "enter", "\t": "tab",
}  # fmt: skip
"""Pyautogui's names of keys that differ from ours."""
_BUTTONS = {"left": "left", "primary": "left", "middle": "middle", "right": "right", "secondary": "right"}


def read_pyautogui(text: str, size: tuple[int, int], pointer: tuple[float, float] = (0.0, 0.0)) -> tuple[Action, ...]:
    """Return the input events of a program, as actions of COMPUTER_13. Each second that is begun is one `wait`.

    `size`: width and height of the screen in pixels. `pointer`: its position at the beginning, from which relative movements start.
    OSWorld's WAIT, FAIL and DONE are read as well. Raises ActionError, which names the refused part, before anything is done.
    """
    if (word := text.strip().strip("`").strip()) in _SPECIAL:
        return (COMPUTER_13.action(*_SPECIAL[word]),)
    events = _Events(size, pointer)
    Interpreter(frozenset({"pyautogui", "time"}), events.call, events.leave).run(text)
    if not events.found:
        raise ActionError("the program does nothing: call pyautogui, or answer WAIT, FAIL or DONE")
    return tuple(events.found)


class _Events:
    """The input events that calls stand for. Its public methods are the functions of pyautogui; durations and the like are left out."""

    def __init__(self, size: tuple[int, int], pointer: tuple[float, float]) -> None:
        self.found: list[Action] = []
        self._size, self._at, self._seconds = size, pointer, 0.0
        pyautogui = (
            self.click, self.left_click, self.right_click, self.middle_click, self.double_click, self.triple_click, self.move_to, self.move,
            self.drag_to, self.drag, self.mouse_down, self.mouse_up, self.scroll, self.hscroll, self.write, self.press, self.key_down,
            self.key_up, self.hotkey, self.hold, self.size, self.position, self.sleep,
        )  # fmt: skip
        self._functions: dict[str, Callable[..., Value]] = {f"pyautogui.{_camel(each.__name__)}": each for each in pyautogui}
        self._functions |= {
            "pyautogui.moveRel": self.move, "pyautogui.dragRel": self.drag, "pyautogui.vscroll": self.scroll, "time.sleep": self.sleep,
            "pyautogui.typewrite": self.write,
        }  # fmt: skip

    def call(self, call: Call) -> Value:
        """Record the effect of a call. Return its value. Raises ActionError."""
        if call.name in ("pyautogui.PAUSE=", "pyautogui.FAILSAFE=", "print"):
            return None
        function = self._functions.get(call.name)
        if function is None:
            near = difflib.get_close_matches(call.name, self._functions, 1, 0.8)
            raise ActionError(
                f"`{call.name}` is not allowed: " + (f"did you mean {near[0]}?" if near else "it is no input event of pyautogui")
            )
        try:
            given = inspect.signature(function).bind(*call.positional, **call.named)
        except TypeError as error:
            raise ActionError(f"`{call}`: {error}") from error
        return function(*given.args, **given.kwargs)

    def leave(self, call: Call) -> None:
        """Release the keys that the block of a `with pyautogui.hold(...)` held."""
        if call.name != "pyautogui.hold":
            raise ActionError(f"`with {call.name}(...)` is not allowed: only pyautogui.hold may stand there")
        for key in reversed(_texts(call.positional[0] if call.positional else call.named.get("keys"))):
            self.key_up(key)

    def click(
        self, x: Value = None, y: Value = None, clicks: Value = 1, interval: Value = 0, button: Value = "left", *_: Value, **__: Value
    ) -> None:
        times, name = _whole(clicks, "clicks"), _button(button)
        if not 0 <= times <= 9:
            raise ActionError(f"clicks={times} is no number of clicks: write 1 to 9")
        self.move_to(x, y)
        if times:
            self._add("click_here", name, float(times))

    def left_click(self, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        self.click(x, y)

    def right_click(self, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        self.click(x, y, button="right")

    def middle_click(self, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        self.click(x, y, button="middle")

    def double_click(self, x: Value = None, y: Value = None, interval: Value = 0, button: Value = "left", *_: Value, **__: Value) -> None:
        self.click(x, y, 2, button=button)

    def triple_click(self, x: Value = None, y: Value = None, interval: Value = 0, button: Value = "left", *_: Value, **__: Value) -> None:
        self.click(x, y, 3, button=button)

    def move_to(self, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        if isinstance(x, tuple) and y is None:
            x, y = (*x, None, None)[:2]
        if x is None and y is None:
            return
        self._at = self._point(self._at[0] if x is None else _number(x, "x"), self._at[1] if y is None else _number(y, "y"))
        self._add("move_to", *self._at)

    def move(self, x: Value = 0, y: Value = 0, *_: Value, **given: Value) -> None:
        x, y = given.get("xOffset", x), given.get("yOffset", y)
        self.move_to(self._at[0] + _number(x or 0, "xOffset"), self._at[1] + _number(y or 0, "yOffset"))

    def drag_to(self, x: Value = None, y: Value = None, duration: Value = 0, *_: Value, button: Value = "left", **__: Value) -> None:
        to = self._point(self._at[0] if x is None else _number(x, "x"), self._at[1] if y is None else _number(y, "y"))
        self._at = to
        if _button(button) == "left":
            self._add("drag_to", *to)
        else:
            self._add("mouse_down", _button(button))
            self._add("move_to", *to)
            self._add("mouse_up", _button(button))

    def drag(self, x: Value = 0, y: Value = 0, duration: Value = 0, *_: Value, button: Value = "left", **given: Value) -> None:
        x, y = given.get("xOffset", x), given.get("yOffset", y)
        self.drag_to(self._at[0] + _number(x or 0, "xOffset"), self._at[1] + _number(y or 0, "yOffset"), button=button)

    def mouse_down(self, x: Value = None, y: Value = None, button: Value = "left", *_: Value, **__: Value) -> None:
        self.move_to(x, y)
        self._add("mouse_down", _button(button))

    def mouse_up(self, x: Value = None, y: Value = None, button: Value = "left", *_: Value, **__: Value) -> None:
        self.move_to(x, y)
        self._add("mouse_up", _button(button))

    def scroll(self, clicks: Value, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        self.move_to(x, y)
        self._add("scroll_by", 0.0, float(_whole(clicks, "clicks")))

    def hscroll(self, clicks: Value, x: Value = None, y: Value = None, *_: Value, **__: Value) -> None:
        self.move_to(x, y)
        self._add("scroll_by", float(_whole(clicks, "clicks")), 0.0)

    def write(self, message: Value, interval: Value = 0, *_: Value, **__: Value) -> None:
        if isinstance(message, tuple):
            for key in _texts(message):
                self._add("press", _key(key))
        elif isinstance(message, str):
            if message:
                self._add("type", message)
        else:
            raise ActionError(f"write({message!r}): write a text, or a list of keys")

    def press(self, keys: Value, presses: Value = 1, interval: Value = 0, *_: Value, **__: Value) -> None:
        times = _whole(presses, "presses")
        if not 0 <= times <= _MOST_EVENTS:
            raise ActionError(f"presses={times} is too many: at most {_MOST_EVENTS}")
        for _round in range(times):
            for key in _texts(keys):
                self._add("press", _key(key))

    def key_down(self, key: Value, *_: Value, **__: Value) -> None:
        self._add("key_down", _key(_texts(key)[0]))

    def key_up(self, key: Value, *_: Value, **__: Value) -> None:
        self._add("key_up", _key(_texts(key)[0]))

    def hotkey(self, *keys: Value, interval: Value = 0, **__: Value) -> None:
        names = [name for each in keys for name in _texts(each)]
        if not names:
            raise ActionError("hotkey() names no key")
        *held, last = map(_key, names)
        modifiers = {"control", "shift", "alt", "meta"}
        if last not in modifiers and set(held) <= modifiers:
            self._add("press", "+".join((*held, last)))
            return
        for each in (*held, last):
            self._add("key_down", each)
        for each in reversed((*held, last)):
            self._add("key_up", each)

    def hold(self, keys: Value) -> None:
        for key in _texts(keys):
            self.key_down(key)

    def size(self) -> Value:
        return self._size

    def position(self) -> Value:
        return self._at

    def sleep(self, seconds: Value) -> None:
        seconds = max(0.0, _number(seconds, "seconds"))
        self._seconds += seconds
        if self._seconds > MOST_SECONDS:
            raise ActionError(f"the program waits for more than {MOST_SECONDS:g} s: wait less, and look at the screen again")
        for _second in range(ceil(seconds)):
            self._add("wait")

    def _point(self, x: float, y: float) -> tuple[float, float]:
        width, height = self._size
        if not (0 <= x < width and 0 <= y < height):
            raise ActionError(f"({x:g}, {y:g}) is outside the screen of {width} x {height} pixels")
        return float(round(x)), float(round(y))

    def _add(self, name: str, *args: str | float) -> None:
        if len(self.found) >= _MOST_EVENTS:
            raise ActionError(f"the program has more than {_MOST_EVENTS} input events: do less in one step")
        self.found.append(COMPUTER_13.action(name, *args))


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _texts(value: Value) -> Sequence[str]:
    found = value if isinstance(value, tuple) else (value,)
    texts = [each for each in found if isinstance(each, str) and each]
    if not texts or len(texts) < len(found):
        raise ActionError(f"{value!r} is no key: write its name, or a list of names")
    return texts


def _key(name: str) -> str:
    return name if len(name) == 1 and name.isprintable() else _KEYS.get(name.lower(), name.lower().replace("ctrl", "control"))


def _button(value: Value) -> str:
    if value not in _BUTTONS:
        raise ActionError(f"{value!r} is no button: left, middle or right")
    return _BUTTONS[str(value)]


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ActionError(f"{name}={value!r} is no number")
    return float(value)


def _whole(value: Any, name: str) -> int:
    return round(_number(value, name))
