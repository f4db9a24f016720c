"""Elements of a page as the targets of actions: their nodes, the points to click, and scripts that run on them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.partial import PartialAction
from exact.environments.browser.page.ids import NodeLocation
from exact.environments.browser.page.script import script
from exact.errors import ActionError

_VANISHED = (
    "No node",
    "Could not find node",
    "detached",
    "does not belong to the document",
    "layout object",
    "Cannot find context",
    "No frame",
)
"""Parts of CDP's errors about an element that is no longer there."""


def locate(context: ActionContext, id: str) -> NodeLocation:
    """Return the node of an element id. Raises ActionError where there is none on the present page."""
    location = context.ids.location(id)
    if location is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if location.tab != context.tab.index or location.document != context.tab.traffic.documents:
        raise ActionError(f"[{id}] is on a page that is gone: name an id from the present observation")
    return location


async def aim_at(context: ActionContext, id: str) -> dict[str, Any]:
    """Return the point to click, `{x, y}`, after scrolling it into view, or `{option}` for an option of a closed drop-down."""
    async with aiming(context) as aim:
        return await aim(id)


@asynccontextmanager
async def aiming(context: ActionContext) -> AsyncIterator[Callable[..., Awaitable[dict[str, Any]]]]:
    """Yield a function that finds the points of elements. On an ActionError scroll back all that it scrolled.

    Raises PartialAction instead of ActionError where something was scrolled.
    """
    moved = list[tuple[str, NodeLocation, Any]]()

    async def at(id: str, location: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
        answer = await _call(context, id, location, function, *args)
        if before := answer.get("before"):
            moved.append((id, location, before))
        return _accepted(id, answer)

    async def aim(id: str, *, covered: bool = False) -> dict[str, Any]:
        """Return what `aim_at` does, and whether anything `moved`. `covered` accepts a point where something else lies on top."""
        location, had = locate(context, id), len(moved)
        target, frame = await at(id, location, script("act/aim"), covered), location.frame
        while "x" in target and frame != context.tab.main_frame:
            frame, owner = await context.tab.owner(frame)
            around = NodeLocation(location.tab, location.document, owner, frame)
            target = await at(id, around, script("act/aim_through_frame"), target["x"], target["y"], covered)
        return {**target, "moved": len(moved) > had}

    try:
        yield aim
    except ActionError as error:
        if not moved:
            raise
        with suppress(ActionError):  # an element vanished meanwhile
            for id, location, before in reversed(moved):
                await _call(context, id, location, script("act/scroll_back"), before)
        raise PartialAction(str(error)) from error


async def ask_element(context: ActionContext, id: str, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer. Raises ActionError where the script refuses, or there is no such element."""
    return _accepted(id, await _call(context, id, locate(context, id), function, *args))


def _accepted(id: str, answer: dict[str, Any]) -> dict[str, Any]:
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return answer


async def _call(context: ActionContext, id: str, location: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer.

    Raises ActionError where the element has vanished, PartialAction where it vanished while the script ran.
    """
    from playwright.async_api import Error

    try:
        return dict(await context.tab.call(location.backend, location.frame, function, *args))
    except Error as error:
        if not any(words in str(error) for words in _VANISHED):
            raise
        kind = PartialAction if "callFunctionOn" in str(error) else ActionError
        raise kind(f"[{id}] has vanished: name an id from the present observation") from error
