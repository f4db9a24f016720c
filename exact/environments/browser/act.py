"""Carry out actions with real input events."""

from __future__ import annotations

import asyncio
import difflib
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urljoin

from exact.action import Action
from exact.environments.browser import scripts
from exact.environments.browser.tab import Tab
from exact.environments.browser.tree import Ids, Place
from exact.errors import ActionError

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


class Body(NamedTuple):
    """What an action is done with."""

    tab: Tab
    ids: Ids
    width: int
    height: int
    opener: bool
    """Whether closing this tab leaves another one."""
    refusal: Callable[[str], str]
    """Why the agent may not go to a URL; empty if it may."""
    behind: Callable[[], str]
    """Takes the address that going back leads to where the tab does not know it: the page was restored. Empty if there is none."""
    fill: Callable[[str], str] = str
    """A text as it is typed: with what an agent knows by name only."""


async def act(body: Body, action: Action) -> None:
    """Carry out one action. Returns when the input was handed over, not when the page is quiet. Raises ActionError."""
    if action.name not in _DEEDS:
        raise ActionError(f"unknown action {action}: valid: {', '.join(_DEEDS)}")
    await _DEEDS[action.name](body, action)


async def _click(body: Body, action: Action) -> None:
    place = _place(body, action.elements[0])
    target = await _aim(body, action.elements[0], place)
    if "option" in target:
        await _ask(body, action.elements[0], place, scripts.SELECT, None)
    else:
        await _click_on(body, target["x"], target["y"])


async def _click_at(body: Body, action: Action) -> None:
    x, y = (float(value) for value in action.args)
    if x >= body.width or y >= body.height:
        raise ActionError(f"point {x:g}, {y:g} is outside the viewport of {body.width} by {body.height}")
    await _click_on(body, x, y)


async def _click_on(body: Body, x: float, y: float) -> None:
    await _point(body, x, y)
    await body.tab.page.mouse.down()
    await body.tab.page.mouse.up()


async def _point(body: Body, x: float, y: float) -> None:
    """Move the pointer and let what that shows arrive: a picture that is still on its way has no size to be hit."""
    await body.tab.page.mouse.move(x, y)
    await body.tab.evaluate(f"void document.elementFromPoint({x}, {y})?.getBoundingClientRect()")
    if not body.tab.traffic.is_idle:
        with suppress(TimeoutError):
            async with asyncio.timeout(_MOMENT / 1000):
                await body.tab.traffic.idle()


async def _hover(body: Body, action: Action) -> None:
    target = await _aim(body, action.elements[0], _place(body, action.elements[0]))
    if "option" in target:
        raise ActionError(f'[{action.elements[0]}] is an option of a drop-down: write select [id of the drop-down] "label"')
    await body.tab.page.mouse.move(target["x"], target["y"])


async def _drag(body: Body, action: Action) -> None:
    one, other = action.elements
    start = await _aim(body, one, _place(body, one))
    end = await _aim(body, other, _place(body, other), covered=True)
    start = await _aim(body, one, _place(body, one))
    if "option" in start or "option" in end:
        raise ActionError("options of a drop-down cannot be dragged")
    if not (0 <= end["x"] < body.width and 0 <= end["y"] < body.height):
        raise ActionError(f"[{one}] and [{other}] are not in view together")
    mouse = body.tab.page.mouse
    await _point(body, start["x"], start["y"])
    await mouse.down()
    await mouse.move(end["x"], end["y"], steps=6)
    await mouse.move(end["x"], end["y"])
    await mouse.up()


async def _fill(body: Body, action: Action) -> None:
    id, text = action.elements[0], body.fill(str(action.args[1]))
    how = await _ask(body, id, _place(body, id), scripts.FOCUS, text)
    keyboard = body.tab.page.keyboard
    if how["done"]:
        return
    if not text:
        await keyboard.press("Delete")
    elif len(text) > _TYPED or not text.isprintable():
        await keyboard.insert_text(text)
    else:
        await keyboard.type(text)


async def _press(body: Body, action: Action) -> None:
    chord = str(action.args[0])
    if len(chord) == 1 and not chord.isascii():
        await body.tab.page.keyboard.insert_text(chord)
        return
    from playwright.async_api import Error

    try:
        await body.tab.page.keyboard.press(chord)
    except Error as error:
        if "Unknown key" not in str(error):
            raise
        raise ActionError(f"{chord} is on no keyboard: use fill for such text") from error


async def _select(body: Body, action: Action) -> None:
    id, label = action.elements[0], str(action.args[1])
    answer = await _ask(body, id, _place(body, id), scripts.SELECT, label)
    if "labels" in answer:
        labels = answer["labels"]
        near = difflib.get_close_matches(label, labels, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"valid: {', '.join(map(repr, labels[:12]))}{', ...' if len(labels) > 12 else ''}"
        raise ActionError(f"[{id}] has no option {label!r}: {hint}")


async def _scroll(body: Body, action: Action) -> None:
    moved = await body.tab.evaluate(f"({scripts.SCROLL})({1 if action.args[0] == 'down' else -1})")
    if not moved:
        raise ActionError(f"nothing to scroll {action.args[0]}: this is the end")


async def _goto(body: Body, action: Action) -> None:
    url = urljoin(body.tab.page.url, str(action.args[0]))
    reason = body.refusal(url)
    if reason:
        raise ActionError(f"cannot go to {url}: {reason}")
    answer = await body.tab.cdp.send("Page.navigate", {"url": url})
    error = answer.get("errorText", "")
    if error and error != "net::ERR_ABORTED":
        raise ActionError(f"cannot go to {url}: {error.removeprefix('net::')}")


async def _go_back(body: Body, action: Action) -> None:
    history = await body.tab.cdp.send("Page.getNavigationHistory")
    at, entries = history["currentIndex"], history["entries"]
    if at < 1 or entries[at - 1]["url"] == "about:blank":
        if url := body.behind():
            await body.tab.evaluate(f"location.replace({json.dumps(url)})")
            return
        if not body.opener:
            raise ActionError("there is no page to go back to")
        await body.tab.page.close()
        return
    await body.tab.cdp.send("Page.navigateToHistoryEntry", {"entryId": entries[at - 1]["id"]})


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
}


def _place(body: Body, id: str) -> Place:
    place = body.ids.place(id)
    if place is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if place.tab != body.tab.index or place.document != body.tab.traffic.documents:
        raise ActionError(f"[{id}] was on a page that has gone: name an id from the present observation")
    return place


async def _aim(body: Body, id: str, place: Place, *, covered: bool = False) -> dict[str, Any]:
    """The point to click, `{x, y}`, after scrolling it into view; or `{option}` for an option of a closed drop-down.

    `covered` admits a point where something else lies on top.
    """
    target = await _ask(body, id, place, scripts.AIM, covered)
    if place.frame != body.tab.main_frame and "x" in target:
        quads = await body.tab.cdp.send("DOM.getContentQuads", {"backendNodeId": place.backend})
        if quads["quads"]:
            quad = quads["quads"][0]
            return {"x": sum(quad[0::2]) / 4, "y": sum(quad[1::2]) / 4}
    return target


async def _ask(body: Body, id: str, place: Place, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element; its `refused` is an ActionError."""
    from playwright.async_api import Error

    try:
        answer = await body.tab.call(place.backend, place.frame, function, *args)
    except Error as error:
        if any(words in str(error) for words in _GONE):
            raise ActionError(f"[{id}] has vanished: name an id from the present observation") from error
        raise
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return dict(answer)
