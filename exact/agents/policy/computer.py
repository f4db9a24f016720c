"""Calls of a model's own computer tool as actions of an environment.

OpenAI's and Anthropic's tools name a gesture and points of the picture. A gesture becomes the environment's action on the control under the
point, so that answers that aim at the same control agree, or else its action at the point.

Gestures of the computer tools of OpenAI and Anthropic, in one form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from exact.action import Action, ActionSpace
from exact.agents.parse import ParsedAction, admitted, as_shown, thought
from exact.context import Context, Taken
from exact.errors import ActionError, AnswerError
from exact.models import tokens
from exact.models.base import ChatRequest, Choice, Display, Image, Message, ToolCall
from exact.models.reasoning import final_answer
from exact.observation import Box, Element, Observation
from exact.views.pictures import fit_picture
from exact.views.prune import INTERACTIVE

GESTURES = frozenset(
    {
        *("click", "click_at", "click_here", "double_click", "double_click_at", "right_click", "right_click_at", "mouse_down", "mouse_up"),
        *("hover", "move_to", "drag", "drag_at", "drag_to", "scroll", "scroll_in", "scroll_by", "wheel"),
        *("type", "fill", "press", "key_down", "key_up", "wait"),
    }
)
"""Actions that the tool's gestures stand for. Only the others are offered in words."""

LONGEST_SIDE = 1568
"""Longest side in pixels of a picture that providers show to the model as it is."""
_NEAR = 16.0
"""Pixels within which the pointer counts as there already."""
_LARGE = 0.25
"""Share of the screen from which an element is too large to stand for a point in it."""
_CONTAINERS = frozenset(
    {"listbox", "list", "grid", "table", "tree", "menu", "dialog", "alertdialog", "feed", "log", "region", "textbox", "tabpanel"}
)
"""Roles of elements that may scroll on their own."""
_EXACT = frozenset({"slider", "ColorWell", "graphics-symbol", "canvas", "image", "img"})
"""Roles of elements in which the point itself matters."""


def on_screen(request: ChatRequest, actions: ActionSpace) -> ChatRequest:
    """Return a request that offers the computer tool on its last picture, in a size that no provider scales further."""
    *before, last = request.messages
    picture = next(part for part in reversed(last.parts) if isinstance(part, Image))
    shown = fit_picture(picture.data, LONGEST_SIDE)
    parts = tuple(Image(shown) if part is picture and shown is not picture.data else part for part in last.parts)
    width, height = tokens.size(shown)
    screen = Display(width=width, height=height, kind="browser" if "goto" in actions.verbs else "linux")
    return msgspec.structs.replace(request, messages=(*before, Message(last.role, parts)), screen=screen)


def parse_call(
    choice: Choice, parse: Callable[[str], ParsedAction], request: ChatRequest, context: Context, actions: ActionSpace
) -> ParsedAction:
    """Return the action of the first tool call in an answer; if there is none, that of its text, which `parse` reads.

    Raises AnswerError if the answer was cut off, and ActionError if the action was refused in this state, and as `ground_call` and `parse`
    do.
    """
    if choice.finish == "length":
        raise AnswerError(f"the answer was cut off at the limit of {request.sampling.max_tokens} tokens: think in fewer words")
    if not choice.calls:
        return parse(choice.text)
    assert request.screen is not None and context.observation.screenshot is not None
    width, height = tokens.size(context.observation.screenshot)
    scale = (width / request.screen.width, height / request.screen.height)
    called = ground_call(choice.calls[0], actions, context.observation, scale, context.history)
    action = as_shown(called, actions, context.texts)
    return ParsedAction(admitted(action, context.observation, context.tried), thought(final_answer(choice.text)))


def ground_call(call: ToolCall, actions: ActionSpace, observation: Observation, scale: Point, history: Sequence[Taken] = ()) -> Action:
    """Return the action that a call of the computer tool stands for: its first gesture, apart from screenshots, which are taken anyway.

    `scale` is the size of the screen relative to the picture that the model saw. Raises ActionError for a gesture that the environment has
    no action for, or that aims at nothing, and for a call that the provider's safety checks hold.
    """
    if call.name != "computer":
        raise ActionError(f"there is no tool {call.name!r}: use `computer`, or write a line such as `Action: {_last(actions)}`")
    if checks := call.arguments.get("checks"):
        told = "; ".join(str(check.get("message") or check.get("code")) for check in checks)
        raise ActionError(f"the provider asks a person to confirm this first ({told}): take another action")
    given = [read_gesture(each, scale) for each in call.arguments.get("actions") or [call.arguments] if isinstance(each, Mapping)]
    gesture = next((each for each in given if each.kind != "screenshot"), None)
    if gesture is None:
        raise ActionError("the last picture is the screenshot, and is up to date: call an action")
    return _Grounding(actions, observation, _pointer(history)).action(gesture)


def _pointer(history: Sequence[Taken]) -> Point | None:
    """Return the point at which the last action left the pointer, if it says so."""
    last = history[-1].action if history and not history[-1].error else None
    if last is None or last.name not in ("move_to", "click_at", "double_click_at", "right_click_at", "drag_to"):
        return None
    x, y = last.args[-2:]
    return float(x), float(y)


class _Grounding:
    """The actions that gestures stand for in one state."""

    def __init__(self, actions: ActionSpace, observation: Observation, pointer: Point | None) -> None:
        self._actions, self._seen, self._pointer = actions, observation, pointer

    def action(self, gesture: Gesture) -> Action:
        """Return the action of a gesture. Raises ActionError."""
        match gesture.kind:
            case "click" | "double_click" | "right_click":
                return self._aimed(gesture, gesture.kind, f"{gesture.kind}_at")
            case "click_with":
                if "click_with" not in self._actions.verbs:
                    raise ActionError("click cannot be done with keys held: press keys on their own")
                return self._aimed(gesture, "click_with", "", gesture.text)
            case "move":
                return self._aimed(gesture, "hover", "move_to")
            case "drag":
                return self._drag(gesture)
            case "scroll":
                return self._scroll(gesture)
            case "type":
                return self._type(gesture.text)
            case "press":
                return self._made(gesture, "press", chord(gesture.text))
            case "button":
                return self._made(gesture, gesture.text.removeprefix("left_"), "left")
            case "back" | "forward":
                return self._made(gesture, f"go_{gesture.kind}")
            case _:
                return self._made(gesture, "wait")

    def _aimed(self, gesture: Gesture, by_element: str, by_point: str, *args: str) -> Action:
        if not gesture.points:
            raise ActionError(f"{gesture.text} says no point: give x and y in pixels of the picture")
        point = gesture.points[-1]
        control = _control(self._seen, point) if by_element in self._actions.verbs else None
        if control is None and by_point in self._actions.verbs:
            return self._actions.action(by_point, *point)
        element = control or _target(self._seen, point)
        if element is None or by_element not in self._actions.verbs:
            x, y = point
            what = "there is no element" if by_element in self._actions.verbs else f"there is no action for {gesture.text}"
            raise ActionError(f"{what} at {x:g}, {y:g}: aim at another point, or write a line such as `Action: {_last(self._actions)}`")
        return self._actions.action(by_element, element.id, *args)

    def _drag(self, gesture: Gesture) -> Action:
        if len(gesture.points) < 2:
            raise ActionError("a drag needs two points: where it starts and where it ends")
        start, end = gesture.points[0], gesture.points[-1]
        if "drag_at" in self._actions.verbs:
            return self._actions.action("drag_at", *start, *end)
        if "drag_to" in self._actions.verbs:
            return self._actions.action("drag_to", *end) if self._is_at(start) else self._actions.action("move_to", *start)
        first, second = _target(self._seen, start), _target(self._seen, end)
        if "drag" not in self._actions.verbs or first is None or second is None:
            raise ActionError("there is nothing to drag between these points: aim at two elements")
        return self._actions.action("drag", first.id, second.id)

    def _scroll(self, gesture: Gesture) -> Action:
        right, down = gesture.moved
        if not right and not down:
            raise ActionError("the wheel is not turned: give a distance to scroll")
        point = gesture.points[-1] if gesture.points else None
        if "scroll_by" in self._actions.verbs:
            if point is not None and not self._is_at(point):
                return self._actions.action("move_to", *point)
            return self._actions.action("scroll_by", *(_notches(each) for each in (right, -down)))
        way = WAYS[(0, 1 if down > 0 else -1) if abs(down) >= abs(right) else (1 if right > 0 else -1, 0)]
        inside = [each for each in _under(self._seen, point) if each.role in _CONTAINERS] if point is not None else []
        if inside and "scroll_in" in self._actions.verbs:
            return self._actions.action("scroll_in", inside[0].id, way)
        if way in ("left", "right") and point is not None and (under := _under(self._seen, point)):
            return self._made(gesture, "scroll_in", under[0].id, way)
        return self._made(gesture, "scroll", way)

    def _type(self, text: str) -> Action:
        if "type" in self._actions.verbs:
            return self._actions.action("type", text)
        field = next((each for each in self._seen.elements if "focused" in each.states and each.value is not None), None)
        if field is None:
            raise ActionError("no field has the focus: click the one to type into first")
        return self._actions.action("fill", field.id, f"{field.value}{text}")

    def _made(self, gesture: Gesture, name: str, *args: str) -> Action:
        if name not in self._actions.verbs:
            raise ActionError(f"there is no action for {gesture.text}: write a line such as `Action: {_last(self._actions)}`")
        return self._actions.action(name, *args)

    def _is_at(self, point: Point) -> bool:
        return self._pointer is not None and all(abs(a - b) <= _NEAR for a, b in zip(point, self._pointer, strict=True))


def _notches(given: float) -> float:
    """Return whole notches of the wheel, at least one if it is turned at all."""
    return float(round(given)) or (given > 0) - (given < 0)


def _under(observation: Observation, point: Point) -> list[Element]:
    """Return the visible elements under a point, the smallest first; of equal ones the last in the document, which lies on top."""
    found = [each for each in reversed(observation.elements) if each.visible and each.box is not None and _holds(each.box, point)]
    return sorted(found, key=_area)


def _target(observation: Observation, point: Point) -> Element | None:
    """Return the smallest element under a point. None if it is large, so that its middle may be far from the point."""
    under = _under(observation, point)
    return under[0] if under and _area(under[0]) <= _LARGE * max(map(_area, observation.elements)) else None


def _area(element: Element) -> float:
    return element.box.width * element.box.height if element.box else 0.0


def _control(observation: Observation, point: Point) -> Element | None:
    """Return the control under a point. None if there is none, if two overlap, or if the point itself matters."""
    found = [each for each in _under(observation, point) if each.role in INTERACTIVE]
    if not found or found[0].role in _EXACT:
        return None
    inner = found[0].box
    return found[0] if inner and all(each.box and _contains(each.box, inner) for each in found) else None


def _holds(box: Box, point: Point) -> bool:
    return box.x <= point[0] < box.x + box.width and box.y <= point[1] < box.y + box.height


def _contains(outer: Box, inner: Box) -> bool:
    """Return whether a box lies in another one, to a pixel."""
    return (
        outer.x <= inner.x + 1
        and outer.y <= inner.y + 1
        and outer.x + outer.width >= inner.x + inner.width - 1
        and outer.y + outer.height >= inner.y + inner.height - 1
    )


def _last(actions: ActionSpace) -> str:
    """Return the form of the action that ends the task, as an example of an action in words."""
    return [verb.usage for verb in actions.verbs.values()][-1]


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
    words = "+".join(map(str, given["keys"])) if isinstance(given.get("keys"), list) else str(given.get("keys") or text or "")
    if kind == "click" and words and str(given.get("button") or "left") == "left":
        return Gesture("click_with", _points(given, scale), words)
    if kind in ("click", "double_click", "right_click", "drag", "move", "scroll") and words:
        raise ActionError(f"{name} cannot be done with keys held: press keys on their own")
    if kind == "click":
        button = str(given.get("button") or "left")
        if button not in ("left", *_SIDE_BUTTONS):
            raise ActionError(f"there is no click with the {button} button: use left or right")
        kind = _SIDE_BUTTONS.get(button, kind)
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
