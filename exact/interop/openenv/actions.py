"""Actions as a client writes them: in this package's grammar, or as BrowserGym's function calls."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exact.action import Action, ActionSpace
from exact.errors import ActionError

Args = list[str | float]


def read_action(text: str, actions: ActionSpace) -> Action | None:
    """Return the action that a text writes: `click [12]`, or `click('12')`. None for `noop()`. Raises ActionError.

    A call is read, never run: its arguments are literals.
    """
    text = text.strip()
    if (call := _call(text)) is None:
        return actions.parse(text)
    name, args, keywords = call
    if name == "noop":
        return None
    if name in _CALLS:
        verbs, arguments = _CALLS[name]
        try:
            given = arguments(args, keywords)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise ActionError(
                f"{text[:80]!r} lacks an argument, or has one of another type: write it as BrowserGym describes it"
            ) from error
        verb = next((each for each in verbs if each in actions.verbs), None)
        if verb is not None:
            return actions.action(verb, *given)
    elif name in actions.verbs:
        return actions.action(name, *args)
    raise ActionError(f"{name}() is no action here: use one of {', '.join(actions.verbs)}, or noop()")


def _call(text: str) -> tuple[str, Args, dict[str, str | float]] | None:
    """Return the name and arguments of a call; None where the text is none. Raises ActionError."""
    if "(" not in text or not text.endswith(")") or not text.partition("(")[0].strip().isidentifier():
        return None
    try:
        call = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ActionError(f"{text[:80]!r} is no call: write one, such as click('12')") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ActionError(f"{text[:80]!r} is more than one call: write one, such as click('12')")
    args = [_literal(each, text) for each in call.args]
    return call.func.id, args, {each.arg: _literal(each.value, text) for each in call.keywords if each.arg}


def _literal(node: ast.expr, text: str) -> str | float:
    """Return a literal argument. Raises ActionError."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if isinstance(node, ast.List) and len(node.elts) == 1 and sign == 1:  # select_option takes a list of options
        node = node.elts[0]
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and sign == 1:
        return node.value
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return sign * float(node.value)
    raise ActionError(f"{text[:80]!r} has an argument that is neither a text nor a number")


Read = Callable[[Args, dict[str, str | float]], tuple[str | float, ...]]


def _names(*names: str) -> Read:
    """Return a function that takes arguments by position or by name, and leaves others out."""

    def read(args: Args, keywords: dict[str, str | float]) -> tuple[str | float, ...]:
        return tuple(args[i] if i < len(args) else keywords[name] for i, name in enumerate(names))

    return read


def _scrolled(args: Args, keywords: dict[str, str | float]) -> tuple[str]:
    x, y = _names("delta_x", "delta_y")(args, keywords)
    return ("down" if float(y) > 0 or (y == 0 and float(x) > 0) else "up",)


def _nothing(args: Args, keywords: dict[str, str | float]) -> tuple[()]:
    return ()


def _cleared(args: Args, keywords: dict[str, str | float]) -> tuple[str | float, ...]:
    return (*_names("bid")(args, keywords), "")


def _keys(args: Args, keywords: dict[str, str | float]) -> tuple[str | float, ...]:
    return (_names("bid", "key_comb")(args, keywords)[1],)


_CALLS: dict[str, tuple[tuple[str, ...], Read]] = {
    "click": (("click",), _names("bid")),
    "dblclick": (("double_click",), _names("bid")),
    "hover": (("hover",), _names("bid")),
    "focus": (("click",), _names("bid")),
    "check": (("click",), _names("bid")),
    "uncheck": (("click",), _names("bid")),
    "fill": (("fill",), _names("bid", "value")),
    "clear": (("fill",), _cleared),
    "press": (("press",), _keys),
    "select_option": (("select",), _names("bid", "options")),
    "drag_and_drop": (("drag",), _names("from_bid", "to_bid")),
    "upload_file": (("upload",), _names("bid", "file")),
    "scroll": (("scroll",), _scrolled),
    "mouse_click": (("click_at",), _names("x", "y")),
    "mouse_drag_and_drop": (("drag_at",), _names("from_x", "from_y", "to_x", "to_y")),
    "keyboard_press": (("press",), _names("key")),
    "keyboard_type": (("type",), _names("text")),
    "keyboard_insert_text": (("type",), _names("text")),
    "goto": (("goto",), _names("url")),
    "go_back": (("go_back",), _nothing),
    "go_forward": (("go_forward",), _nothing),
    "new_tab": (("new_tab",), _nothing),
    "tab_close": (("close_tab",), _nothing),
    "send_msg_to_user": (("stop",), _names("text")),
    "report_infeasible": (("stop",), _names("reason")),
}
"""Verbs of ours for BrowserGym's functions, and how their arguments are read."""
