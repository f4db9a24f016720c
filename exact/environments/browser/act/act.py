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
from exact.environments.browser.act.partial import Halfway
from exact.environments.browser.act.upload import give
from exact.environments.browser.page import mouse
from exact.environments.browser.page.clipboard import Clipboard, uses_clipboard
from exact.environments.browser.page.ids import Ids, Place
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
class Body:
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


async def act(body: Body, action: Action) -> None:
    """Carry out one action. Returns when the input was handed over, not when the page is quiet.

    Raises ActionError: nothing was done. Halfway: something was. EnvironmentFailure: a server is gone.
    """
    if action.name not in _DEEDS:
        raise ActionError(f"unknown action {action}: valid: {', '.join(_DEEDS)}")
    await _DEEDS[action.name](body, action)


async def _click(body: Body, action: Action) -> None:
    await _click_element(body, action.elements[0])


async def _click_element(body: Body, id: str) -> None:
    target = await _aim(body, id)
    if "option" in target:
        await _ask(body, id, _place(body, id), script("act/select"), None)
    else:
        await _click_on(body, target["x"], target["y"])


async def _click_at(body: Body, action: Action) -> None:
    x, y = (float(value) for value in action.args)
    if x >= body.width or y >= body.height:
        raise ActionError(f"point {x:g}, {y:g} is outside the viewport of {body.width} by {body.height}")
    await _click_on(body, x, y)


async def _click_on(body: Body, x: float, y: float) -> None:
    await _point(body, x, y)
    await mouse.click(body.tab.cdp, x, y)


async def _double_click(body: Body, action: Action) -> None:
    await _click_otherwise(body, action, count=2)


async def _right_click(body: Body, action: Action) -> None:
    await _click_otherwise(body, action, button="right")


async def _click_otherwise(body: Body, action: Action, *, count: int = 1, button: mouse.Button = "left") -> None:
    target = await _aim(body, action.elements[0])
    if "option" in target:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')
    await _point(body, target["x"], target["y"])
    await mouse.click(body.tab.cdp, target["x"], target["y"], button=button, count=count)


async def _point(body: Body, x: float, y: float) -> None:
    """Move the pointer and let what that shows arrive: a picture that is still on its way has no size to be hit."""
    await mouse.move(body.tab.cdp, x, y)
    await body.tab.evaluate(f"void document.elementFromPoint({x}, {y})?.getBoundingClientRect()")
    if not body.tab.traffic.is_idle:
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT / 1000):
                await body.tab.traffic.idle()


async def _hover(body: Body, action: Action) -> None:
    target = await _aim(body, action.elements[0])
    if "option" in target:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')
    await mouse.move(body.tab.cdp, target["x"], target["y"])


async def _drag(body: Body, action: Action) -> None:
    one, other = action.elements
    async with _aiming(body) as aim:
        await aim(one)
        end = await aim(other, covered=True)
        start = await aim(one)
        if start["moved"]:  # and the other end with it
            end = await aim(other, covered=True)
        if "option" in start or "option" in end:
            raise ActionError("options of a drop-down cannot be dragged")
        if (start["moved"] and end["moved"]) or not (0 <= end["x"] < body.width and 0 <= end["y"] < body.height):
            raise ActionError(f"[{one}] and [{other}] are not in view together")
    await _drag_along(body, (start["x"], start["y"]), (end["x"], end["y"]))


async def _drag_at(body: Body, action: Action) -> None:
    x, y, to_x, to_y = (float(value) for value in action.args)
    if max(x, to_x) >= body.width or max(y, to_y) >= body.height:
        raise ActionError(f"{action.key} leaves the viewport of {body.width} by {body.height}")
    await _drag_along(body, (x, y), (to_x, to_y))


async def _drag_along(body: Body, start: tuple[float, float], end: tuple[float, float]) -> None:
    hand = body.tab.page.mouse  # which makes a drag of what can be dragged
    await _point(body, *start)
    await hand.move(*start)
    await hand.down()
    await hand.move(*end, steps=6)
    await hand.move(*end)
    await hand.up()


async def _fill(body: Body, action: Action) -> None:
    id, text = action.elements[0], body.fill(str(action.args[1]))
    how = await _ask(body, id, _place(body, id), script("act/focus"), text)
    if how["done"]:
        return
    if text:
        await _put_in(body, text)
    else:
        await body.tab.page.keyboard.press("Delete")


async def _type(body: Body, action: Action) -> None:
    await body.tab.evaluate(script_call("act/new_word"))
    await _put_in(body, body.fill(str(action.args[0])))


async def _put_in(body: Body, text: str) -> None:
    keyboard = body.tab.page.keyboard
    if len(text) > _TYPED or not text.isprintable():
        await keyboard.insert_text(text)
    else:
        await keyboard.type(text)


async def _press(body: Body, action: Action) -> None:
    chord = str(action.args[0])
    if len(chord) == 1 and not chord.isascii():
        await body.tab.page.keyboard.insert_text(chord)
        return
    if not chord.isascii():
        raise ActionError(f"{chord} is on no keyboard: use fill for such text")
    if len(chord) == 1:
        await body.tab.evaluate(script_call("act/new_word"))
    async with body.clipboard.turn() if body.clipboard and uses_clipboard(chord) else nullcontext():
        await body.tab.page.keyboard.press(chord)


async def _select(body: Body, action: Action) -> None:
    id, label = action.elements[0], str(action.args[1])
    answer = await _ask(body, id, _place(body, id), script("act/select"), label)
    if "labels" in answer:
        labels = answer["labels"]
        near = difflib.get_close_matches(label, labels, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(map(repr, labels[:12]))}{', ...' if len(labels) > 12 else ''}"
        raise ActionError(f"[{id}] has no option {label!r}: {hint}")


async def _scroll(body: Body, action: Action) -> None:
    moved = await body.tab.evaluate(script_call("act/scroll", 1 if action.args[0] == "down" else -1))
    if not moved:
        raise ActionError(f"nothing to scroll {action.args[0]}: this is the end")


async def _scroll_in(body: Body, action: Action) -> None:
    id, way = action.elements[0], str(action.args[1])
    if not (await _ask(body, id, _place(body, id), script("act/scroll_in"), way))["moved"]:
        raise ActionError(f"[{id}] is in nothing that scrolls {way} any further")


async def _upload(body: Body, action: Action) -> None:
    id, place = action.elements[0], _place(body, action.elements[0])
    await give(body.tab, id, str(action.args[1]), body.files, partial(_ask, body, id, place), lambda: _click_element(body, id))


async def _goto(body: Body, action: Action) -> None:
    url = urljoin(body.tab.page.url, str(action.args[0]))
    reason = body.refusal(url)
    if reason:
        raise ActionError(f"cannot go to {url}: {reason}")
    answer = await body.tab.cdp.send("Page.navigate", {"url": url})
    error = answer.get("errorText", "").removeprefix("net::ERR_")
    if error.startswith(_SILENT):
        raise EnvironmentFailure(f"{url} cannot be reached: {error}")
    if error and error != "ABORTED":
        raise Halfway(f"cannot go to {url}: {error}")  # the browser shows a page of its own instead


async def _go_back(body: Body, action: Action) -> None:
    history = await body.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at < 1 or entries[at - 1]["url"] == "about:blank":
        if url := body.behind():
            await body.tab.evaluate(f"location.replace({json.dumps(url)})")
            return
        if not body.others:
            raise ActionError("there is no page to go back to")
        await body.tab.page.close()
        return
    await body.tab.cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[at - 1]["id"]})


async def _go_forward(body: Body, action: Action) -> None:
    history = await body.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at + 1 >= len(entries):
        raise ActionError("there is no page to go forward to")
    await body.tab.cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[at + 1]["id"]})


async def _new_tab(body: Body, action: Action) -> None:
    await body.tab.page.context.new_page()


async def _tab(body: Body, action: Action) -> None:
    number = int(float(action.args[0]))
    if not body.others:
        raise ActionError(f"there is no tab {number}: this is the only one")
    if number > len(body.others):
        raise ActionError(f"there is no tab {number}: the other tabs are 1 to {len(body.others)}")
    await body.focus(body.others[number - 1])


async def _close_tab(body: Body, action: Action) -> None:
    if not body.others:
        raise ActionError("this is the only tab: it stays open")
    await body.tab.page.close()


async def _no_dialog(body: Body, action: Action) -> None:
    raise ActionError(f"{action.key} does not fit: no dialog is open")


async def _wait(body: Body, action: Action) -> None:
    await body.tab.evaluate(f"exact.change({_MOMENT})")


_DEEDS: dict[str, Callable[[Body, Action], Awaitable[None]]] = {
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


def _place(body: Body, id: str) -> Place:
    place = body.ids.place(id)
    if place is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if place.tab != body.tab.index or place.document != body.tab.traffic.documents:
        raise ActionError(f"[{id}] was on a page that has gone: name an id from the present observation")
    return place


async def _aim(body: Body, id: str) -> dict[str, Any]:
    """The point to click, `{x, y}`, after scrolling it into view; or `{option}` for an option of a closed drop-down."""
    async with _aiming(body) as aim:
        return await aim(id)


@asynccontextmanager
async def _aiming(body: Body) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
    """To find the points of elements with. Where one then turns out not to fit, all that was scrolled is scrolled back."""
    moved = list[tuple[str, Place, Any]]()

    async def at(id: str, place: Place, function: str, *args: Any) -> dict[str, Any]:
        answer = await _call(body, id, place, function, *args)
        if before := answer.get("before"):
            moved.append((id, place, before))
        return _fit(id, answer)

    async def aim(id: str, *, covered: bool = False) -> dict[str, Any]:
        """As `_aim`, and whether anything `moved`. `covered` admits a point where something else lies on top."""
        place, had = _place(body, id), len(moved)
        target, frame = await at(id, place, script("act/aim"), covered), place.frame
        while "x" in target and frame != body.tab.main_frame:
            frame, owner = await body.tab.owner(frame)
            around = Place(place.tab, place.document, owner, frame)
            target = await at(id, around, script("act/aim_through_frame"), target["x"], target["y"], covered)
        return {**target, "moved": len(moved) > had}

    try:
        yield aim
    except ActionError as error:
        if not moved:
            raise
        with suppress(ActionError):  # it vanished meanwhile
            for id, place, before in reversed(moved):
                await _call(body, id, place, script("act/scroll_back"), before)
        raise Halfway(str(error)) from error


async def _ask(body: Body, id: str, place: Place, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element; its `refused` is an ActionError."""
    return _fit(id, await _call(body, id, place, function, *args))


def _fit(id: str, answer: dict[str, Any]) -> dict[str, Any]:
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return answer


async def _call(body: Body, id: str, place: Place, function: str, *args: Any) -> dict[str, Any]:
    """What a script on an element answers. Raises ActionError where it has vanished, Halfway where it did under the script."""
    from playwright.async_api import Error

    try:
        return dict(await body.tab.call(place.backend, place.frame, function, *args))
    except Error as error:
        if not any(words in str(error) for words in _GONE):
            raise
        kind = Halfway if "callFunctionOn" in str(error) else ActionError
        raise kind(f"[{id}] has vanished: name an id from the present observation") from error
