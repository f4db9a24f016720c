"""Carry out actions with real input events."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from exact.action import Action
from exact.environments.browser.act.partial import PartialAction
from exact.environments.browser.act.upload import upload_files
from exact.environments.browser.page.cdp import Button, click_mouse, move_mouse
from exact.environments.browser.page.clipboard import Clipboard, uses_clipboard
from exact.environments.browser.page.ids import Ids, NodeLocation
from exact.environments.browser.page.script import script, script_call
from exact.environments.browser.page.tab import Tab
from exact.errors import ActionError, EnvironmentFailure

_TYPED = 64
"""Characters up to which text is typed key by key; longer text is put in at once."""
_MOMENT = 1000
"""Milliseconds that `wait`, or a click for what hovering shows, waits at most."""
_GONE = (
    "No node",
    "Could not find node",
    "detached",
    "does not belong to the document",
    "layout object",
    "Cannot find context",
    "No frame",
)
_SILENT = ("CONNECTION_", "NAME_", "ADDRESS_", "NETWORK_", "INTERNET_", "PROXY_", "TUNNEL_", "SOCKET_", "TIMED_OUT", "EMPTY_RESPONSE")
"""How Chromium's errors begin that say that there is no server."""


@dataclass(frozen=True, kw_only=True)
class ActionContext:
    """What an action is done with."""

    tab: Tab
    ids: Ids
    width: int
    height: int
    others: Sequence[Tab] = ()
    """The other tabs, in the order in which they are listed."""
    refusal: Callable[[str], str]
    """Why the agent may not go to a URL; empty if it may."""
    behind: Callable[[], str]
    """Takes the address that going back leads to where the tab does not know it: the page was restored. Empty if there is none."""
    focus: Callable[[Tab], Awaitable[None]]
    """Makes another tab the present one."""
    fill: Callable[[str], str] = str
    """A text as it is typed: with what an agent knows by name only."""
    files: Mapping[str, Path]
    """What may be uploaded, by name."""
    clipboard: Clipboard | None = None
    """Where environments share a browser, and with it one clipboard."""


async def act(context: ActionContext, action: Action) -> None:
    """Carry out one action. Returns when the input was handed over, not when the page is quiet.

    Raises ActionError: nothing was done. PartialAction: something was. EnvironmentFailure: a server is gone.
    """
    if action.name not in _HANDLERS:
        raise ActionError(f"unknown action {action}: valid: {', '.join(_HANDLERS)}")
    await _HANDLERS[action.name](context, action)


async def _click(context: ActionContext, action: Action) -> None:
    await _click_element(context, action.elements[0])


async def _click_element(context: ActionContext, id: str) -> None:
    target = await _aim(context, id)
    if "option" in target:
        await _ask(context, id, _place(context, id), script("act/select"), None)
    else:
        await _click_on(context, target["x"], target["y"])


async def _click_at(context: ActionContext, action: Action) -> None:
    x, y = (float(value) for value in action.args)
    if x >= context.width or y >= context.height:
        raise ActionError(f"point {x:g}, {y:g} is outside the viewport of {context.width} by {context.height}")
    await _click_on(context, x, y)


async def _click_on(context: ActionContext, x: float, y: float) -> None:
    await _point(context, x, y)
    await click_mouse(context.tab.cdp, x, y)


async def _double_click(context: ActionContext, action: Action) -> None:
    await _click_otherwise(context, action, count=2)


async def _right_click(context: ActionContext, action: Action) -> None:
    await _click_otherwise(context, action, button="right")


async def _click_otherwise(context: ActionContext, action: Action, *, count: int = 1, button: Button = "left") -> None:
    target = await _aim(context, action.elements[0])
    if "option" in target:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')
    await _point(context, target["x"], target["y"])
    await click_mouse(context.tab.cdp, target["x"], target["y"], button=button, count=count)


async def _point(context: ActionContext, x: float, y: float) -> None:
    """Move the pointer and let what that shows arrive: a picture that is still on its way has no size to be hit."""
    await move_mouse(context.tab.cdp, x, y)
    await context.tab.evaluate(f"void document.elementFromPoint({x}, {y})?.getBoundingClientRect()")
    if not context.tab.traffic.is_idle:
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT / 1000):
                await context.tab.traffic.idle()


async def _hover(context: ActionContext, action: Action) -> None:
    target = await _aim(context, action.elements[0])
    if "option" in target:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')
    await move_mouse(context.tab.cdp, target["x"], target["y"])


async def _drag(context: ActionContext, action: Action) -> None:
    one, other = action.elements
    async with _aiming(context) as aim:
        await aim(one)
        end = await aim(other, covered=True)
        start = await aim(one)
        if start["moved"]:  # and the other end with it
            end = await aim(other, covered=True)
        if "option" in start or "option" in end:
            raise ActionError("options of a drop-down cannot be dragged")
        if (start["moved"] and end["moved"]) or not (0 <= end["x"] < context.width and 0 <= end["y"] < context.height):
            raise ActionError(f"[{one}] and [{other}] are not in view together")
    await _drag_along(context, (start["x"], start["y"]), (end["x"], end["y"]))


async def _drag_at(context: ActionContext, action: Action) -> None:
    x, y, to_x, to_y = (float(value) for value in action.args)
    if max(x, to_x) >= context.width or max(y, to_y) >= context.height:
        raise ActionError(f"{action.key} leaves the viewport of {context.width} by {context.height}")
    await _drag_along(context, (x, y), (to_x, to_y))


async def _drag_along(context: ActionContext, start: tuple[float, float], end: tuple[float, float]) -> None:
    hand = context.tab.page.mouse  # which makes a drag of what can be dragged
    await _point(context, *start)
    await hand.move(*start)
    await hand.down()
    await hand.move(*end, steps=6)
    await hand.move(*end)
    await hand.up()


async def _fill(context: ActionContext, action: Action) -> None:
    id, text = action.elements[0], context.fill(str(action.args[1]))
    how = await _ask(context, id, _place(context, id), script("act/focus"), text)
    if how["done"]:
        return
    if text:
        await _put_in(context, text)
    else:
        await context.tab.page.keyboard.press("Delete")


async def _type(context: ActionContext, action: Action) -> None:
    await context.tab.evaluate(script_call("act/new_word"))
    await _put_in(context, context.fill(str(action.args[0])))


async def _put_in(context: ActionContext, text: str) -> None:
    keyboard = context.tab.page.keyboard
    if len(text) > _TYPED or not text.isprintable():
        await keyboard.insert_text(text)
    else:
        await keyboard.type(text)


async def _press(context: ActionContext, action: Action) -> None:
    chord = str(action.args[0])
    if len(chord) == 1 and not chord.isascii():
        await context.tab.page.keyboard.insert_text(chord)
        return
    if not chord.isascii():
        raise ActionError(f"{chord} is on no keyboard: use fill for such text")
    if len(chord) == 1:
        await context.tab.evaluate(script_call("act/new_word"))
    async with context.clipboard.turn() if context.clipboard and uses_clipboard(chord) else nullcontext():
        await context.tab.page.keyboard.press(chord)


async def _select(context: ActionContext, action: Action) -> None:
    id, label = action.elements[0], str(action.args[1])
    answer = await _ask(context, id, _place(context, id), script("act/select"), label)
    if "labels" in answer:
        labels = answer["labels"]
        near = difflib.get_close_matches(label, labels, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(map(repr, labels[:12]))}{', ...' if len(labels) > 12 else ''}"
        raise ActionError(f"[{id}] has no option {label!r}: {hint}")


async def _scroll(context: ActionContext, action: Action) -> None:
    moved = await context.tab.evaluate(script_call("act/scroll", 1 if action.args[0] == "down" else -1))
    if not moved:
        raise ActionError(f"nothing to scroll {action.args[0]}: this is the end")


async def _scroll_in(context: ActionContext, action: Action) -> None:
    id, way = action.elements[0], str(action.args[1])
    if not (await _ask(context, id, _place(context, id), script("act/scroll_in"), way))["moved"]:
        raise ActionError(f"[{id}] is in nothing that scrolls {way} any further")


async def _upload(context: ActionContext, action: Action) -> None:
    id, place = action.elements[0], _place(context, action.elements[0])
    await upload_files(
        context.tab, id, str(action.args[1]), context.files, partial(_ask, context, id, place), lambda: _click_element(context, id)
    )


async def _goto(context: ActionContext, action: Action) -> None:
    url = urljoin(context.tab.page.url, str(action.args[0]))
    reason = context.refusal(url)
    if reason:
        raise ActionError(f"cannot go to {url}: {reason}")
    answer = await context.tab.cdp.send("Page.navigate", {"url": url})
    error = answer.get("errorText", "").removeprefix("net::ERR_")
    if error.startswith(_SILENT):
        raise EnvironmentFailure(f"{url} cannot be reached: {error}")
    if error and error != "ABORTED":
        raise PartialAction(f"cannot go to {url}: {error}")  # the browser shows a page of its own instead


async def _go_back(context: ActionContext, action: Action) -> None:
    history = await context.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at < 1 or entries[at - 1]["url"] == "about:blank":
        if url := context.behind():
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
    raise ActionError(f"{action.key} does not fit: no dialog is open")


async def _wait(context: ActionContext, action: Action) -> None:
    await context.tab.evaluate(f"exact.change({_MOMENT})")


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
    "scroll_in": _scroll_in,
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


def _place(context: ActionContext, id: str) -> NodeLocation:
    place = context.ids.place(id)
    if place is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if place.tab != context.tab.index or place.document != context.tab.traffic.documents:
        raise ActionError(f"[{id}] was on a page that has gone: name an id from the present observation")
    return place


async def _aim(context: ActionContext, id: str) -> dict[str, Any]:
    """The point to click, `{x, y}`, after scrolling it into view; or `{option}` for an option of a closed drop-down."""
    async with _aiming(context) as aim:
        return await aim(id)


@asynccontextmanager
async def _aiming(context: ActionContext) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
    """To find the points of elements with. Where one then turns out not to fit, all that was scrolled is scrolled back."""
    moved = list[tuple[str, NodeLocation, Any]]()

    async def at(id: str, place: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
        answer = await _call(context, id, place, function, *args)
        if before := answer.get("before"):
            moved.append((id, place, before))
        return _fit(id, answer)

    async def aim(id: str, *, covered: bool = False) -> dict[str, Any]:
        """As `_aim`, and whether anything `moved`. `covered` admits a point where something else lies on top."""
        place, had = _place(context, id), len(moved)
        target, frame = await at(id, place, script("act/aim"), covered), place.frame
        while "x" in target and frame != context.tab.main_frame:
            frame, owner = await context.tab.owner(frame)
            around = NodeLocation(place.tab, place.document, owner, frame)
            target = await at(id, around, script("act/aim_through_frame"), target["x"], target["y"], covered)
        return {**target, "moved": len(moved) > had}

    try:
        yield aim
    except ActionError as error:
        if not moved:
            raise
        with suppress(ActionError):  # it vanished meanwhile
            for id, place, before in reversed(moved):
                await _call(context, id, place, script("act/scroll_back"), before)
        raise PartialAction(str(error)) from error


async def _ask(context: ActionContext, id: str, place: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element; its `refused` is an ActionError."""
    return _fit(id, await _call(context, id, place, function, *args))


def _fit(id: str, answer: dict[str, Any]) -> dict[str, Any]:
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return answer


async def _call(context: ActionContext, id: str, place: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
    """What a script on an element answers. Raises ActionError where it has vanished, PartialAction where it did under the script."""
    from playwright.async_api import Error

    try:
        return dict(await context.tab.call(place.backend, place.frame, function, *args))
    except Error as error:
        if not any(words in str(error) for words in _GONE):
            raise
        kind = PartialAction if "callFunctionOn" in str(error) else ActionError
        raise kind(f"[{id}] has vanished: name an id from the present observation") from error
