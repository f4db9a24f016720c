"""Elements of a page as the targets of actions: their nodes, and scripts that run on them."""

from __future__ import annotations

from typing import Any

from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.partial import PartialAction, Vanished
from exact.environments.browser.page.ids import NodeLocation
from exact.errors import ActionError

_GONE = "has vanished: name an id from the present observation"
_VANISHED = (
    "No node",
    "Could not find node",
    "detached",
    "does not belong to the document",
    "layout object",
    "Cannot find context",
    "context was destroyed",
    "No frame",
    "Frame with the given",
    "frame for given id",
    "navigated or closed",
)
"""Parts of CDP's errors about an element that is no longer there."""


def is_vanished(error: Exception) -> bool:
    """Return whether an error of CDP only means that an element or its document is no longer there."""
    return any(words in str(error) for words in _VANISHED)


def locate(context: ActionContext, id: str) -> NodeLocation:
    """Return the node of an element id. Raises ActionError where there is none on the present page."""
    location = context.ids.location(id)
    if location is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if location.tab != context.tab.index or location.document != context.tab.traffic.documents:
        raise Vanished(f"[{id}] is on a page that is gone: name an id from the present observation")
    return location


async def ask_element(context: ActionContext, id: str, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer. Raises ActionError where the script refuses, or there is no such element."""
    return accepted(id, await call_on(context, id, locate(context, id), function, *args))


def accepted(id: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a script. Raises ActionError where the script refuses, Vanished where its element is in no document any more."""
    if "vanished" in answer:
        raise Vanished(f"[{id}] {_GONE}")
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return answer


async def call_on(context: ActionContext, id: str, location: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer.

    Raises ActionError where the element has vanished, PartialAction where it vanished while the script ran.
    """
    from playwright.async_api import Error

    try:
        return dict(await context.tab.call(location.backend, location.frame, function, *args))
    except Error as error:
        if not is_vanished(error):
            raise
        kind = PartialAction if "callFunctionOn" in str(error) else Vanished
        raise kind(f"[{id}] {_GONE}") from error
