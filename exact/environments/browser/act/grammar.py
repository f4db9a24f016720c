"""The actions of a browser environment, and their canonical forms."""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit, urlunsplit

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.errors import ActionError
from exact.observation import Element

Args = tuple[str | float, ...]

_MODIFIERS = {
    **dict.fromkeys(("alt", "option"), "Alt"),
    **dict.fromkeys(("control", "ctrl"), "Control"),
    **dict.fromkeys(("meta", "cmd", "command", "super", "win"), "Meta"),
    "shift": "Shift",
}
_KEY_NAMES = (
    *("Enter", "Tab", "Escape", "Backspace", "Delete", "Insert", "Home", "End", "PageUp", "PageDown"),
    *("ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "Space", "ContextMenu"),
    *(f"F{number}" for number in range(1, 13)),
)
_KEYS = {name.lower(): name for name in _KEY_NAMES} | {
    "return": "Enter",
    "esc": "Escape",
    "del": "Delete",
    "ins": "Insert",
    "up": "ArrowUp",
    "down": "ArrowDown",
    "left": "ArrowLeft",
    "right": "ArrowRight",
    "pgup": "PageUp",
    "pgdn": "PageDown",
    "pagedn": "PageDown",
    "spacebar": "Space",
    "plus": "+",
}
_MODIFIER_GRAMMAR = '("Alt+" | "Control+" | "Meta+" | "Shift+")'
_KEY_GRAMMAR = " | ".join([*(f'"{name}"' for name in _KEY_NAMES), "[A-Za-z0-9]"])
_HELD_GRAMMAR = r'"\"" ("Alt" | "Control" | "Control+Shift" | "Meta" | "Shift") "\""'
"""Grammar (GBNF) of keys that are held during a click."""
CHORD_GRAMMAR = rf'"\"" {_MODIFIER_GRAMMAR}{{0,2}} ({_KEY_GRAMMAR}) "\""'
"""Grammar (GBNF) of keys pressed together: known names, letters and digits."""
_URL_GRAMMAR = r'''"\"" ("http" "s"? "://" [a-z0-9] | "/" [A-Za-z0-9]) [A-Za-z0-9./?=&_%#~+-]{0,120} "\""'''
_MOST_PIXELS = 99_999
"""Largest coordinate of a point, in CSS pixels."""

_REFERENCE = re.compile(r"\[\s*(?P<role>[A-Za-z][\w-]*)?\s*(?P<name>\"(?:[^\"\\]|\\.)*\")\s*\]")
"""An element by role and name, or by name alone."""


def chord(text: str) -> str:
    """Return the canonical form of keys pressed together: modifiers by full name and sorted, then one key.

    >>> chord("shift+ctrl+a")
    'Control+Shift+a'

    A letter is lower case beside a modifier, and `Shift+a` alone is `A`. Raises ActionError for an unknown key.
    """
    *modifiers_given, key = _split(text)
    modifiers = sorted({_modifier(name) for name in modifiers_given})
    key = _key(key)
    if len(key) == 1 and key.isascii() and key.isalpha() and modifiers:
        key = key.lower()
        if modifiers == ["Shift"]:
            return key.upper()
    return "+".join((*modifiers, key))


def _split(text: str) -> list[str]:
    """Return the names in a chord. A plus sign at the end is the key itself."""
    if text.rstrip().endswith("++"):
        return [*text.rstrip()[:-2].split("+"), "+"]
    return [text] if len(text) == 1 else text.split("+")


def _modifier(name: str) -> str:
    found = _MODIFIERS.get(name.strip().lower())
    if not found:
        raise ActionError(f"unknown modifier {name!r}: valid: Alt, Control, Meta, Shift")
    return found


def _key(name: str) -> str:
    key = name.strip() or name[:1]
    if key == " ":
        return "Space"
    if len(key) == 1 and key.isprintable():
        return key
    if key.lower() in _KEYS:
        return _KEYS[key.lower()]
    near = difflib.get_close_matches(key.lower(), _KEYS, n=1)
    hint = f"did you mean {_KEYS[near[0]]!r}?" if near else f"valid: one character, {', '.join(_KEY_NAMES[:9])}, ..."
    raise ActionError(f"unknown key {name!r}: {hint}")


def _chord(args: Args) -> Args:
    return (chord(str(args[0])),)


def _held(args: Args) -> Args:
    """Return an element and the keys that are held, by full name and sorted. Raises ActionError for other keys."""
    return args[0], "+".join(sorted({_modifier(name) for name in str(args[1]).split("+")}))


def _point(args: Args) -> Args:
    if not all(isinstance(a, int | float) and 0 <= a <= _MOST_PIXELS for a in args):
        raise ActionError(f"point {args[0]} {args[1]} is invalid: write CSS pixels from the top left corner of the viewport")
    return tuple(float(round(a)) for a in args if not isinstance(a, str))


def _line(args: Args) -> Args:
    return tuple(value for at in (0, 2) for value in _point(args[at : at + 2]))


def _number(args: Args) -> Args:
    number = args[0]
    if isinstance(number, str) or number != int(number) or number < 1:
        raise ActionError(f"there is no tab {number}: write tab 1 for the first of the other tabs")
    return args


def _url(args: Args) -> Args:
    text = str(args[0]).strip()
    try:
        parts = urlsplit(text)
        host = parts.hostname
    except ValueError as error:
        raise ActionError(f"{text!r} is no URL: {error}") from error
    if text.startswith("/") and not text.startswith("//"):
        return (text,)
    if not parts.scheme or not (host or parts.path):
        raise ActionError(f'{text!r} is no URL: write goto "https://host/path" or goto "/path"')
    if not host:
        return (text,)
    return (urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, parts.fragment)),)


_ELEMENT, _TEXT, _NUMBER = Parameter.ELEMENT, Parameter.TEXT, Parameter.NUMBER

_PAGE = (
    Verb(name="click", form=(_ELEMENT,), help="click an element"),
    Verb(name="fill", form=(_ELEMENT, _TEXT), help="replace the content of a field by typing"),
    Verb(name="press", form=(_TEXT,), normalise=_chord, grammar=CHORD_GRAMMAR, help='press keys together, such as "Enter" or "Ctrl+a"'),
    Verb(name="hover", form=(_ELEMENT,), help="move the pointer over an element"),
    Verb(name="select", form=(_ELEMENT, _TEXT), help="choose an option of a drop-down or list by its label"),
    Verb(name="drag", form=(_ELEMENT, "to", _ELEMENT), help="drag one element onto another"),
    Verb(name="click_at", form=(_NUMBER, _NUMBER), normalise=_point, help="click a point, in pixels from the top left of the viewport"),
    Verb(name="scroll", form=("up|down",), help="scroll by most of a screen"),
    Verb(name="goto", form=(_TEXT,), normalise=_url, grammar=_URL_GRAMMAR, help="open an address in this tab"),
    Verb(name="go_back", help="go back to the previous page, or close a tab that has none"),
    Verb(name="wait", help="wait until the page changes, at most a second"),
    Verb(name="type", form=(_TEXT,), help="type a text where the focus is, beside what is there"),
    Verb(name="double_click", form=(_ELEMENT,), help="click an element twice"),
    Verb(name="right_click", form=(_ELEMENT,), help="click an element with the right button, for its menu"),
    Verb(name="scroll_in", form=(_ELEMENT, "up|down|left|right"), help="scroll the part of the page that an element is in"),
    Verb(name="wheel", form=(_ELEMENT, "up|down|left|right"), help="turn the mouse wheel over an element, such as a map that it zooms"),
    Verb(name="drag_at", form=(_NUMBER, _NUMBER, "to", _NUMBER, _NUMBER), normalise=_line, help="drag from one point to another"),
)
_BROWSER = (
    Verb(
        name="click_with",
        form=(_ELEMENT, _TEXT),
        normalise=_held,
        grammar=_HELD_GRAMMAR,
        help='click an element while keys are held, such as "Shift" or "Ctrl", to select several',
    ),
    Verb(name="upload", form=(_ELEMENT, _TEXT), help="give a file of the task, by name, to a field or button that asks for one"),
    Verb(name="go_forward", help="undo go_back"),
    Verb(name="new_tab", help="open an empty tab"),
    Verb(
        name="tab", form=(_NUMBER,), normalise=_number, grammar="[1-9]", help="go to another tab, by its number in the list of other tabs"
    ),
    Verb(name="close_tab", help="close this tab"),
    Verb(name="accept", help="press OK in the dialog that is open"),
    Verb(name="dismiss", help="press Cancel in the dialog that is open"),
    Verb(name="answer", form=(_TEXT,), help="answer the question of the dialog that is open, and press OK"),
)
_STOP = Verb(name="stop", form=(_TEXT,), final=True, help="end the task, with the answer if one was asked for")

ASK_USER = Verb(name="ask_user", form=(_TEXT,), help="ask the person who gave the task a question that only they can answer")
"""The question to the person who watches, which a configuration adds to the actions."""
BROWSER_ACTIONS = ActionSpace((*_PAGE, *_BROWSER, _STOP))
"""All actions of a browser environment."""
PAGE_ACTIONS = ActionSpace((*_PAGE, _STOP))
"""Actions of an environment that is one page, without tabs, dialogs and files."""


def resolve_names(text: str, elements: Sequence[Element]) -> str:
    """Replace elements that an action refers to by role and name, `click [button "Sign in"]`, or by name, `click ["Sign in"]`, by ids.

    The first element with exactly that name is taken, else the first whose name contains it. Raises ActionError that suggests the
    nearest name.
    """
    return _REFERENCE.sub(lambda found: f"[{_element_named(found['role'] or '', json.loads(found['name']), elements).id}]", text)


def _element_named(role: str, name: str, elements: Sequence[Element]) -> Element:
    fit = [each for each in elements if role.lower() in ("", each.role.lower())]
    for each in (*(e for e in fit if e.name == name), *(e for e in fit if name.lower() in e.name.lower())):
        return each
    names = list(dict.fromkeys(each.name for each in fit if each.name))
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(map(repr, names[:8])) or 'none'}"
    raise ActionError(f"there is no {role or 'element'} {name!r}: {hint}")


_EDITED = frozenset(
    (
        *("textbox", "searchbox", "combobox", "spinbutton", "slider", "Date"),
        *("DateTime", "InputTime", "ColorWell", "cell", "gridcell", "document"),
    )
)
"""Roles of elements whose content can be edited."""
LISTS = frozenset(("combobox", "listbox", "PopUpButton"))
_ASK_FOR_FILES = frozenset(("button", "link", "generic"))
_UNTYPED = frozenset(
    (
        *("button", "link", "checkbox", "radio", "switch", "tab"),
        *("option", "menuitem", "menuitemcheckbox", "menuitemradio", "treeitem"),
    )
)
"""Roles of elements that take no text while they have the focus."""


def suited(verb: Verb, elements: Sequence[Element]) -> tuple[Element, ...]:
    """Return the elements that a verb has a use for: `fill` those that can be edited, `select` lists, `upload` those that ask for files."""
    if verb.name not in ("fill", "select", "upload"):
        return tuple(elements)
    roles = {"fill": _EDITED, "select": LISTS, "upload": _ASK_FOR_FILES}[verb.name]
    found = (each for each in elements if each.role in roles and "disabled" not in each.states)
    if verb.name == "fill":
        return tuple(each for each in found if "readonly" not in each.states and not (each.role in LISTS and options_of(each, elements)))
    return tuple(found)


def options_of(chosen: Element, elements: Sequence[Element]) -> tuple[str, ...]:
    """Return the names of the options of a list, in order; empty if it shows none."""
    return tuple(dict.fromkeys(each.name for each in options_in(chosen, elements)))


def options_in(chosen: Element, elements: Sequence[Element]) -> Iterator[Element]:
    """Yield the options of a list that have a name and can be chosen."""
    at = next(place for place, each in enumerate(elements) if each.id == chosen.id)
    inside = itertools.takewhile(lambda each: each.depth > chosen.depth, elements[at + 1 :])
    return (each for each in inside if each.role == "option" and each.name.strip() and "disabled" not in each.states)


def holds(action: Action, elements: Sequence[Element]) -> bool:
    """Return whether a field or a list has the very content that an action would give it."""
    if action.name not in ("fill", "select"):
        return False
    return any(each.id == action.args[0] and each.value == action.args[1] for each in elements)


def can_type(elements: Sequence[Element]) -> bool:
    """Return whether typing may have an effect: something that may take a text has the focus, or nothing that can be edited is known."""
    focused = any("focused" in each.states and each.role not in _UNTYPED for each in elements)
    return focused or not any(each.role in _EDITED for each in elements)
