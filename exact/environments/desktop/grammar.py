"""The actions of a desktop: on elements, as in a browser, by coordinates, as in OSWorld's `computer_13`, or as programs of `pyautogui`.

Code as an action, for environments such as desktops, in which a step is a few lines of Python (OSWorld's pyautogui).

The code is not run here: it is sent to the environment, which runs it inside itself.
"""

from __future__ import annotations

import ast
from typing import Literal

from exact.action import ActionSpace, Parameter, Verb
from exact.environments.browser.act.grammar import CHORD_GRAMMAR, chord
from exact.errors import ActionError


def python(help: str, *, name: str = "python") -> Verb:
    """Return a verb whose argument is Python code. `help`: names the imports and the limits."""
    return Verb(name=name, form=(Parameter.TEXT,), code="python", normalise=_canonical, help=help)


def _canonical(args: tuple[str | float, ...]) -> tuple[str | float, ...]:
    """Return the code without comments and layout, so that equal statements are one action. Raises ActionError."""
    text = str(args[0])
    try:
        plain = ast.unparse(ast.parse(text))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionError(f"the code does not parse ({error}): write whole statements") from error
    if not plain:
        raise ActionError("there is no statement in the code: write at least one")
    return (plain,)


Args = tuple[str | float, ...]

Space = Literal["elements", "computer_13", "pyautogui"]

_FURTHEST, _MOST = 9_999, 9
_BUTTONS = "left|middle|right"


def _chord(args: Args) -> Args:
    return (chord(str(args[0])),)


def _key(args: Args) -> Args:
    """Return one key, which may be a modifier."""
    try:
        return (chord(str(args[0])),)
    except ActionError:
        return (chord(f"{args[0]}+Enter").removesuffix("+Enter"),)


def _point(args: Args) -> Args:
    if not all(isinstance(a, float) and 0 <= a <= _FURTHEST for a in args):
        raise ActionError(f"{args[0]} {args[1]} is nowhere: write pixels from the top left corner of the screen")
    return tuple(float(round(a)) for a in args if not isinstance(a, str))


def _distance(args: Args) -> Args:
    if not all(isinstance(a, float) and abs(a) <= _FURTHEST for a in args):
        raise ActionError(f"scroll_by {args[0]} {args[1]} is too far: write notches of the wheel, to the right and upwards")
    return tuple(float(round(a)) for a in args if not isinstance(a, str))


def _times(args: Args) -> Args:
    button, times = args
    if not isinstance(times, float) or not 1 <= times <= _MOST:
        raise ActionError(f"click_here {button} {times} is no number of clicks: write 1 to {_MOST}")
    return button, float(round(times))


_ELEMENT, _TEXT, _NUMBER = Parameter.ELEMENT, Parameter.TEXT, Parameter.NUMBER

_PRESS = Verb(name="press", form=(_TEXT,), normalise=_chord, grammar=CHORD_GRAMMAR, help='press keys together, such as "Enter" or "Ctrl+s"')
_TYPE = Verb(name="type", form=(_TEXT,), help="type a text where the focus is")
_POINT = (_NUMBER, _NUMBER)
_CLICK_AT = Verb(name="click_at", form=_POINT, normalise=_point, help="click a point, in pixels from the top left of the screen")
_WAIT = Verb(name="wait", help="wait until the screen changes, at most a second")
_FAIL = Verb(name="fail", final=True, help="end the task: it cannot be done")
_STOP = Verb(name="stop", form=(_TEXT,), final=True, help="end the task, with the answer if one was asked for")

ELEMENT_ACTIONS = ActionSpace(
    (
        Verb(name="click", form=(_ELEMENT,), help="click an element"),
        Verb(name="double_click", form=(_ELEMENT,), help="click an element twice, quickly"),
        Verb(name="right_click", form=(_ELEMENT,), help="click an element with the right button"),
        Verb(name="fill", form=(_ELEMENT, _TEXT), help="replace the content of a field by typing"),
        _TYPE,
        _PRESS,
        Verb(name="hover", form=(_ELEMENT,), help="move the pointer over an element"),
        Verb(name="select", form=(_ELEMENT, _TEXT), help="choose an option of a drop-down or list by its label"),
        Verb(name="drag", form=(_ELEMENT, "to", _ELEMENT), help="drag one element onto another"),
        _CLICK_AT,
        Verb(name="scroll", form=("up|down",), help="turn the wheel where the pointer is, by most of a window"),
        _WAIT,
        _FAIL,
        _STOP,
    )
)
"""Actions by the ids of an observation's elements."""

COMPUTER_13 = ActionSpace(
    (
        Verb(name="move_to", form=_POINT, normalise=_point, help="move the pointer to a point of the screen, in pixels"),
        _CLICK_AT,
        Verb(
            name="click_here",
            form=(_BUTTONS, _NUMBER),
            normalise=_times,
            grammar="[1-9]",
            help="click a button so many times where the pointer is",
        ),
        Verb(name="mouse_down", form=(_BUTTONS,), help="press a button and hold it"),
        Verb(name="mouse_up", form=(_BUTTONS,), help="let a button go"),
        Verb(name="right_click_at", form=_POINT, normalise=_point, help="click a point with the right button"),
        Verb(name="double_click_at", form=_POINT, normalise=_point, help="click a point twice, quickly"),
        Verb(name="drag_to", form=_POINT, normalise=_point, help="drag from where the pointer is to a point"),
        Verb(
            name="scroll_by",
            form=(_NUMBER, _NUMBER),
            normalise=_distance,
            grammar='"-"? [0-9]{1,2}',
            help="turn the wheel by notches, to the right and upwards",
        ),
        _TYPE,
        _PRESS,
        Verb(name="key_down", form=(_TEXT,), normalise=_key, grammar=CHORD_GRAMMAR, help="press a key and hold it"),
        Verb(name="key_up", form=(_TEXT,), normalise=_key, grammar=CHORD_GRAMMAR, help="let a key go"),
        _WAIT,
        _FAIL,
        _STOP,
    )
)
"""Actions by points of the screen. `computer13.read_computer13` reads OSWorld's own form of an action."""

PYAUTOGUI = ActionSpace(
    (
        python("moves mouse and keyboard by pyautogui, which is imported, as is time; calls, numbers, texts and for loops over them only"),
        _WAIT,
        _FAIL,
        _STOP,
    )
)
"""Programs. `pyautogui.read_pyautogui` reads them as input events."""

SPACES: dict[Space, ActionSpace] = {"elements": ELEMENT_ACTIONS, "computer_13": COMPUTER_13, "pyautogui": PYAUTOGUI}
