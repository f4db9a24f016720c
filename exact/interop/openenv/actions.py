"""Actions as a client writes them: in this package's grammar, or as BrowserGym's function calls.

Observations as OpenEnv's BrowserGym environment gives them, field by field, as plain data.
"""

from __future__ import annotations

import ast
import base64
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from exact.action import Action, ActionSpace
from exact.environments.browser.observe.tree import takes_typing
from exact.errors import ActionError
from exact.observation import Element, Observation
from exact.untrusted import pixels_of

_TICKED = frozenset(("checkbox", "menuitemcheckbox", "menuitemradio", "radio", "switch"))
"""Roles of elements that can be checked."""


def read_action(text: str, actions: ActionSpace, elements: Sequence[Element] = ()) -> Action | None:
    """Return the action that a text writes: `click [12]`, or `click('12')`. None if nothing is to be done. Raises ActionError.

    A call is read, never run: its arguments are literals. elements: those of the page, which tell whether `check`, `uncheck` and `focus`
    are done already, and whether the focus is at the element that `press` wants.
    """
    text = text.strip()
    if (call := _call(text)) is None:
        return actions.parse(text)
    name, args, keywords = call
    if name in _CALLS:
        try:
            given = signature(_CALLS[name]).bind(*args, **keywords)
        except TypeError as error:
            raise ActionError(f"{text[:80]!r}: {error}: write it as BrowserGym does, {name}{signature(_CALLS[name])}") from error
        verb, *args = _CALLS[name](*given.args, **given.kwargs)
        if not verb or not _is_wanted(name, given.arguments.get("bid"), elements):
            return None
    else:
        verb = "" if keywords else name
    if not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in args):
        raise ActionError(f"{text[:80]!r} has an argument that is neither a text nor a number")
    if verb not in actions.verbs:
        raise ActionError(f"{text[:80]!r} is no action here: use one of {', '.join(actions.verbs)}, or noop()")
    return actions.action(verb, *args)


def _call(text: str) -> tuple[str, list[Any], dict[str, Any]] | None:
    """Return the name and arguments of a call; None if the text is not one. Raises ActionError."""
    if "(" not in text or not text.endswith(")") or not text.partition("(")[0].strip().isidentifier():
        return None
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionError(f"{text[:80]!r} is no call: write one, such as click('12')") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ActionError(f"{text[:80]!r} is more than one call: write one, such as click('12')")
    try:
        args = [ast.literal_eval(each) for each in call.args]
        keywords = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise ActionError(f"{text[:80]!r} has an argument that is neither a text nor a number") from error
    return call.func.id, args, keywords


def _is_wanted(call: str, bid: object, elements: Sequence[Element]) -> bool:
    """Return whether anything is left to do for a call that names a state of an element. Raises ActionError if it cannot be reached."""
    if call not in ("check", "uncheck", "focus", "press") or not elements:
        return True
    element = next((each for each in elements if each.id == bid), None)
    if element is None:
        raise ActionError(f"there is no element {str(bid)[:80]!r}: use an id of the page")
    if call in ("check", "uncheck"):
        if element.role not in _TICKED:
            raise ActionError(f"[{bid}] is a {element.role}, which cannot be checked: use click('{bid}')")
        return ("checked" in element.states) != (call == "check")
    focused = next((each for each in elements if "focused" in each.states), None)
    if call == "focus":
        if not takes_typing(element):
            raise ActionError(f"[{bid}] is a {element.role}, which a click would activate: press 'Tab' to move the focus there")
        return focused is not element
    if focused is not element and (focused is None or takes_typing(focused)):
        where = f"at [{focused.id}]" if focused else "nowhere"
        raise ActionError(f"the focus is {where}, not at [{bid}], so the keys would go elsewhere: click('{bid}') first")
    return True


def _clicked(buttons: dict[str, str], button: object, modifiers: object, *place: object) -> tuple[Any, ...]:
    """Return a click. buttons: verbs by the name of the button. Raises ActionError for other buttons, and if keys are held with them."""
    if not isinstance(button, str) or button not in buttons:
        raise ActionError(f"the button {str(button)[:80]!r} is not supported here: use {' or '.join(map(repr, buttons))}")
    if modifiers and buttons[button] == "click":
        return "click_with", *place, "+".join(map(str, modifiers)) if isinstance(modifiers, list | tuple) else str(modifiers)
    if modifiers:
        raise ActionError(f"a click with the modifiers {str(modifiers)[:80]} is not supported: click without modifiers")
    return buttons[button], *place


def _scrolled(delta_x: float, delta_y: float) -> tuple[str, ...]:
    """Return a scroll by most of a screen. Raises ActionError for a direction that `scroll` lacks."""
    if not isinstance(delta_x, int | float) or not isinstance(delta_y, int | float):
        raise ActionError(f"scroll({delta_x!r:.40}, {delta_y!r:.40}) needs two numbers: scroll(0, 200) or scroll(0, -200)")
    if delta_x:
        raise ActionError("scroll() goes up or down only: use scroll_in [id] left or scroll_in [id] right")
    return ("scroll", "down" if delta_y > 0 else "up") if delta_y else ("",)


def _one(name: str, given: object) -> object:
    """Return the only one of a list. Raises ActionError for several."""
    if isinstance(given, list | tuple) and len(given) != 1:
        raise ActionError(f"{len(given)} {name} are not supported at once: give one at a time")
    return given[0] if isinstance(given, list | tuple) else given


_CALLS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "noop": lambda wait_ms=1000: ("",),
    "click": lambda bid, button="left", modifiers=(): _clicked({"left": "click", "right": "right_click"}, button, modifiers, bid),
    "dblclick": lambda bid, button="left", modifiers=(): _clicked({"left": "double_click"}, button, modifiers, bid),
    "hover": lambda bid: ("hover", bid),
    "focus": lambda bid: ("click", bid),
    "check": lambda bid: ("click", bid),
    "uncheck": lambda bid: ("click", bid),
    "fill": lambda bid, value, enable_autocomplete_menu=False: ("fill", bid, value),  # it types, so a menu opens in any case
    "clear": lambda bid: ("fill", bid, ""),
    "press": lambda bid, key_comb: ("press", key_comb),
    "select_option": lambda bid, options: ("select", bid, _one("options", options)),
    "drag_and_drop": lambda from_bid, to_bid: ("drag", from_bid, to_bid),
    "upload_file": lambda bid, file: ("upload", bid, _one("files", file)),
    "scroll": _scrolled,
    "mouse_click": lambda x, y, button="left": _clicked({"left": "click_at"}, button, (), x, y),
    "mouse_drag_and_drop": lambda from_x, from_y, to_x, to_y: ("drag_at", from_x, from_y, to_x, to_y),
    "keyboard_press": lambda key: ("press", key),
    "keyboard_type": lambda text: ("type", text),
    "keyboard_insert_text": lambda text: ("type", text),
    "goto": lambda url: ("goto", url),
    "go_back": lambda: ("go_back",),
    "go_forward": lambda: ("go_forward",),
    "new_tab": lambda: ("new_tab",),
    "tab_close": lambda: ("close_tab",),
    "send_msg_to_user": lambda text: ("stop", text),
    "report_infeasible": lambda reason: ("stop", reason),
}
"""Verbs of ours, with their arguments, for BrowserGym's functions. Each has the parameters of its function: an argument without an effect
is refused."""


_CLICKABLE = frozenset((
    *("button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio"),
    *("searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem"),
))  # fmt: skip


SCREENSHOT_FORMATS = ("pixels", "png")
"""Forms of a screenshot: rows of pixels, as OpenEnv's BrowserGym client reads it, and a PNG in base64, which is a hundredth as long."""


def fields(observation: Observation, goal: str, *, screenshot: str, error: str = "", last_action: str = "") -> dict[str, Any]:
    """Return the fields of an observation but `done` and `reward`. screenshot: its form; empty: None is sent in its place."""
    shot = observation.screenshot if screenshot else None
    picture: Any = shot and (base64.b64encode(shot).decode() if screenshot == "png" else pixels_of(shot))
    clickable = [element for element in observation.elements if element.role in _CLICKABLE and "disabled" not in element.states]
    ids = {each.id for each in clickable}
    return {
        "goal": goal,
        "url": observation.url,
        "text": observation.text,
        "axtree_txt": observation.text,
        "pruned_html": observation.html,
        "screenshot": picture,
        "error": error,
        "last_action_error": bool(error),
        "metadata": {
            "clickable": [{"id": each.id, "role": each.role, "name": each.name, "box": _box(each)} for each in clickable],
            "fingerprint": observation.fingerprint,
            "browsergym_obs": {
                "goal": goal,
                "open_pages_urls": [observation.url, *observation.tabs],
                "focused_element_bid": next((each.id for each in observation.elements if "focused" in each.states), ""),
                "last_action": last_action,
                "last_action_error": error,
                "extra_element_properties": {
                    each.id: {"bbox": _box(each), "visibility": float(each.visible), "clickable": each.id in ids}
                    for each in observation.elements
                },
            },
        },
    }  # fmt: skip


def _box(element: Element) -> list[float] | None:
    box = element.box
    return None if box is None else [box.x, box.y, box.width, box.height]
