"""The handlers of actions: each carries out one verb with real input events.

Scrolling of the parts of a page, through shadow roots and frames, and the wheel of the mouse.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from urllib.parse import urljoin, urlsplit

from exact.action import Action
from exact.environments.browser.act.action_context import (
    ActionContext,
    Ineffective,
    PartialAction,
    fill_at,
    fill_at_focus,
    has_foreign_frames,
)
from exact.environments.browser.act.aiming import accepted, ask_element, call_on, locate
from exact.environments.browser.act.press import click_element, drag_between, drag_element, hover_element, move_pointer
from exact.environments.browser.act.upload import upload_files
from exact.environments.browser.page.cdp import click_mouse, script, script_call, turn_wheel
from exact.environments.browser.page.clipboard import uses_clipboard
from exact.environments.browser.page.ids import NodeLocation
from exact.errors import ActionError, EnvironmentFailure
from exact.origins import origin

_MOST_KEYSTROKES = 64
"""Characters up to which a text is typed key by key. A longer one is inserted at once."""
_WAIT_LIMIT = 1000
"""Maximum milliseconds of a `wait`."""
_UNREACHABLE = ("CONNECTION_", "NAME_", "ADDRESS_", "NETWORK_", "INTERNET_", "PROXY_", "TUNNEL_", "SOCKET_", "TIMED_OUT", "EMPTY_RESPONSE")
"""Beginnings of Chromium's errors for a server that cannot be reached."""


async def act(context: ActionContext, action: Action) -> None:
    """Carry out one action. Return once the page has the input, before it is quiet.

    Raises ActionError if nothing was done, PartialAction if a part was done, and EnvironmentFailure if a server cannot be
    reached.
    """
    if action.name not in _HANDLERS:
        raise ActionError(f"unknown action {action}: valid: {', '.join(_HANDLERS)}")
    await _HANDLERS[action.name](context, action)


async def _click(context: ActionContext, action: Action) -> None:
    await _click_element(context, action.elements[0])


async def _click_element(context: ActionContext, id: str) -> None:
    if not await click_element(context, id):
        await ask_element(context, id, script("act/select"), None)


async def _click_at(context: ActionContext, action: Action) -> None:
    x, y = (float(value) for value in action.args)
    if x >= context.width or y >= context.height:
        raise ActionError(f"point {x:g}, {y:g} is outside the viewport of {context.width} by {context.height}")
    await move_pointer(context, x, y)
    await click_mouse(context.tab.cdp, x, y)


async def _double_click(context: ActionContext, action: Action) -> None:
    _require_element(action, await click_element(context, action.elements[0], count=2))


async def _click_with(context: ActionContext, action: Action) -> None:
    held = tuple(str(action.args[1]).split("+"))
    _require_element(action, await click_element(context, action.elements[0], held=held))


async def _right_click(context: ActionContext, action: Action) -> None:
    _require_element(action, await click_element(context, action.elements[0], button="right"))


async def _hover(context: ActionContext, action: Action) -> None:
    _require_element(action, await hover_element(context, action.elements[0]) is not None)


def _require_element(action: Action, done: bool) -> None:
    if not done:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')


async def _drag(context: ActionContext, action: Action) -> None:
    await drag_element(context, *action.elements)


async def _drag_at(context: ActionContext, action: Action) -> None:
    x, y, to_x, to_y = (float(value) for value in action.args)
    if max(x, to_x) >= context.width or max(y, to_y) >= context.height:
        raise ActionError(f"{action.key} leaves the viewport of {context.width} by {context.height}")
    await move_pointer(context, x, y)
    await drag_between(context, (x, y), (to_x, to_y))


async def _fill(context: ActionContext, action: Action) -> None:
    id, given = action.elements[0], str(action.args[1])
    place = locate(context, id)
    text = await fill_at(context, given, place.frame)
    context.note_field(given, place.backend)
    answer = await ask_element(context, id, script("act/focus"), text)
    if answer["done"]:
        return
    if text != given and await has_foreign_frames(context, given):
        await ask_element(context, id, script("act/insert"), text)
    elif text:
        await _type_text(context, text)
    else:
        await context.tab.page.keyboard.press("Delete")


async def _type(context: ActionContext, action: Action) -> None:
    given = str(action.args[0])
    if not await context.tab.evaluate(script_call("act/new_word")):
        raise ActionError("nothing has the focus to type in: write fill [id], or click a field first; press sends single keys to the page")
    if context.holds_secret(given):
        frame, text = await fill_at_focus(context, given)
        for backend in await context.tab.backends(frame, script_call("page/active_element")):
            context.note_field(given, backend)
        if await has_foreign_frames(context, given):
            accepted("focus", await context.tab.evaluate_in(frame, script_call("act/insert", text)))
            return
        given = text
    await _type_text(context, given)


async def _type_text(context: ActionContext, text: str) -> None:
    keyboard = context.tab.page.keyboard
    if len(text) > _MOST_KEYSTROKES or not text.isprintable():
        await keyboard.insert_text(text)
    else:
        await keyboard.type(text)


async def _press(context: ActionContext, action: Action) -> None:
    chord = str(action.args[0])
    if len(chord) == 1 and not chord.isascii():
        await context.tab.page.keyboard.insert_text(chord)
        return
    if not chord.isascii():
        raise ActionError(f"{chord} is on no keyboard: use fill for this text")
    if len(chord) == 1:
        await context.tab.evaluate(script_call("act/new_word"))
    async with context.clipboard.use() if context.clipboard and uses_clipboard(chord) else nullcontext():
        await context.tab.page.keyboard.press(chord)


async def _select(context: ActionContext, action: Action) -> None:
    id, label = action.elements[0], str(action.args[1])
    answer = await ask_element(context, id, script("act/select"), label)
    if "several" in answer:
        way = f"write one of {', '.join(map(repr, answer['several'][:12]))}" if answer["several"] else "click the one that is meant"
        raise ActionError(f"[{id}] has several options {label!r}: {way}")
    if "labels" in answer:
        labels = answer["labels"]
        near = difflib.get_close_matches(label, labels, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(map(repr, labels[:12]))}{', ...' if len(labels) > 12 else ''}"
        raise ActionError(f"[{id}] has no option {label!r}: {hint}")


async def _scroll(context: ActionContext, action: Action) -> None:
    way = str(action.args[0])
    if not await scroll_middle(context, way):
        await wheel_middle(context, way)  # the page may listen to the wheel itself
        raise Ineffective(f"nothing to scroll {way}: this is the end")


async def _wheel(context: ActionContext, action: Action) -> None:
    _require_element(action, await wheel_over(context, action.elements[0], str(action.args[1])))


async def _scroll_in(context: ActionContext, action: Action) -> None:
    id, way = action.elements[0], str(action.args[1])
    if not await scroll_around(context, id, way):
        raise ActionError(f"[{id}] is in no part of the page that scrolls further {way}")


async def _upload(context: ActionContext, action: Action) -> None:
    id = action.elements[0]
    await upload_files(context, id, str(action.args[1]), lambda: _click_element(context, id))


async def _goto(context: ActionContext, action: Action) -> None:
    given = str(action.args[0])
    url = urljoin(await _base(context), given)
    if not urlsplit(url).scheme:
        raise ActionError(f"cannot go to {given}: this page has no address that it starts from: give a whole one, https://host/path")
    reason = context.refusal(url)
    if reason:
        raise ActionError(f"cannot go to {url}: {reason}")
    error = (await context.tab.navigate(url)).error
    if error and error != "ABORTED":
        raise navigation_error(url, error, is_own=context.is_own(url))


def navigation_error(url: str, error: str, *, is_own: bool) -> PartialAction | EnvironmentFailure:
    """Return the error of an action whose navigation failed; the browser now shows an error page, or no page.

    `error`: Chromium's name of it. `is_own`: whether the address belongs to a site of the task. The environment has failed if such a site
    cannot be reached; a dead link to another one is a fact about the page.
    """
    if is_own and error.startswith(_UNREACHABLE):
        return EnvironmentFailure(f"{url} cannot be reached: {error}")
    return PartialAction(f"cannot go to {url}: {error}")


async def _base(context: ActionContext) -> str:
    """Return the address from which relative ones start: on an error page and in an empty tab, that of the last requested page."""
    if origin(context.tab.url):
        return context.tab.url
    history = await context.tab.cdp.send("Page.getNavigationHistory")
    urls = [entry["url"] for entry in history["entries"][: history["currentIndex"] + 1]]
    return next((url for url in reversed(urls) if origin(url)), "")


async def _go_back(context: ActionContext, action: Action) -> None:
    history = await context.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at < 1 or entries[at - 1]["url"] == "about:blank":
        if url := context.previous_url():
            await context.tab.evaluate(f"location.replace({json.dumps(url)})")
            return
        if not context.others:
            raise ActionError("there is no page to go back to")
        await context.tab.page.close()
        return
    await context.tab.cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[at - 1]["id"]})


async def _go_forward(context: ActionContext, action: Action) -> None:
    history = await context.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at + 1 >= len(entries):
        raise ActionError("there is no page to go forward to")
    await context.tab.cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[at + 1]["id"]})


async def _new_tab(context: ActionContext, action: Action) -> None:
    await context.tab.page.context.new_page()


async def _tab(context: ActionContext, action: Action) -> None:
    number = int(float(action.args[0]))
    if not context.others:
        raise ActionError(f"there is no tab {number}: this is the only one")
    if number > len(context.others):
        raise ActionError(f"there is no tab {number}: the other tabs are 1 to {len(context.others)}")
    await context.focus(context.others[number - 1])


async def _close_tab(context: ActionContext, action: Action) -> None:
    if not context.others:
        raise ActionError("this is the only tab: it stays open")
    await context.tab.page.close()


async def _no_dialog(context: ActionContext, action: Action) -> None:
    raise ActionError(f"{action.key} is not possible: no dialog is open")


async def _wait(context: ActionContext, action: Action) -> None:
    await context.tab.evaluate(f"exact.change({_WAIT_LIMIT})")


_HANDLERS: dict[str, Callable[[ActionContext, Action], Awaitable[None]]] = {
    "click": _click,
    "fill": _fill,
    "press": _press,
    "hover": _hover,
    "select": _select,
    "drag": _drag,
    "click_at": _click_at,
    "scroll": _scroll,
    "goto": _goto,
    "go_back": _go_back,
    "wait": _wait,
    "type": _type,
    "double_click": _double_click,
    "right_click": _right_click,
    "click_with": _click_with,
    "scroll_in": _scroll_in,
    "wheel": _wheel,
    "drag_at": _drag_at,
    "upload": _upload,
    "go_forward": _go_forward,
    "new_tab": _new_tab,
    "tab": _tab,
    "close_tab": _close_tab,
    "accept": _no_dialog,
    "dismiss": _no_dialog,
    "answer": _no_dialog,
}


_NOTCH = 120
"""CSS pixels that the wheel is turned by."""
_WAYS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}
"""Directions as steps to the right and down."""


async def scroll_middle(context: ActionContext, way: str) -> bool:
    """Scroll the scroller in the middle of the viewport, or else one around it. Return whether anything moved. `way`: up or down."""
    return await _scroll_around(context, "", await _middle(context), way, False)


async def scroll_around(context: ActionContext, id: str, way: str) -> bool:
    """Scroll the part of the page that an element is in, also one that only scripts scroll. Return whether anything moved.

    `way`: up, down, left or right. Raises ActionError if there is no such element.
    """
    return await _scroll_around(context, id, locate(context, id), way, True)


async def wheel_middle(context: ActionContext, way: str) -> None:
    """Turn the mouse wheel in the middle of the viewport. `way`: as for `wheel_over`."""
    await _turn(context, context.width / 2, context.height / 2, way)


async def wheel_over(context: ActionContext, id: str, way: str) -> bool:
    """Turn the mouse wheel by a notch over an element. Return False for an option of a closed drop-down.

    `way`: up, down, left or right. Raises ActionError if there is no such element, or it cannot be pointed at.
    """
    if (target := await hover_element(context, id)) is None:
        return False
    await _turn(context, target.x, target.y, way)
    return True


async def _turn(context: ActionContext, x: float, y: float, way: str) -> None:
    right, down = _WAYS[way]
    await turn_wheel(context.tab.cdp, x, y, right * _NOTCH, down * _NOTCH)


async def _scroll_around(context: ActionContext, id: str, location: NodeLocation, way: str, hidden: bool) -> bool:
    """Scroll the nearest part around a node that moves, in the node's frame or else in the frames around it."""
    while not (await call_on(context, id, location, script("act/scroll"), way, hidden))["moved"]:
        if location.frame == context.tab.main_frame:
            return False
        frame, owner = await context.tab.owner(location.frame)
        location = location._replace(backend=owner, frame=frame)
    return True


async def _middle(context: ActionContext) -> NodeLocation:
    """Return the node in the middle of the viewport, in shadow roots and frames too."""
    from playwright.async_api import Error

    tab = context.tab
    x, y = await tab.evaluate("[scrollX + innerWidth / 2, scrollY + innerHeight / 2]")
    try:
        found = await tab.cdp.send("DOM.getNodeForLocation", {"x": round(x), "y": round(y)})
    except Error:  # there is none
        document = await tab.cdp.send("DOM.getDocument", {"depth": 1})
        return NodeLocation(tab.index, tab.traffic.documents, document["root"]["children"][-1]["backendNodeId"], tab.main_frame)
    return NodeLocation(tab.index, tab.traffic.documents, found["backendNodeId"], found["frameId"])
