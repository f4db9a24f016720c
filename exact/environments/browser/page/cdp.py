"""CDP sessions with pages, and the commands that are too slow by way of Playwright's driver.

A command over our own connection takes half the time.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from playwright.async_api import CDPSession

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends a command and returns the message that answers it. Raises EnvironmentFailure where the browser is gone."""

NO_SESSION = -32001
"""CDP's error code for an unknown session."""
MOST_BYTES = 40 << 20
"""Most bytes of one message of a browser. The body of a document of 20 MB has 27 MB."""
TOO_LARGE = "the answer is too large"
"""Beginning of the error in the place of an answer with more bytes than that."""


class PageTooLarge(Exception):
    """A page whose state has more than is read as a whole."""


CLOSED = "the page, its context or the browser has been closed"


class CdpSession:
    """A session with a page over our own connection, made by `CdpConnection.attach`.

    `on`, `send` and what they raise are as in Playwright's CDPSession.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of a name from now on."""
        self._handlers[event].append(handler)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a command and return its result. Raises Playwright's Error where it is refused, or the page is gone."""
        from playwright.async_api import Error

        try:
            answer = await self._ask(method, params or {})
        except EnvironmentFailure as lost:
            raise Error(f"{method}: {CLOSED}: {lost}") from lost
        if error := answer.get("error"):
            raise Error(f"{method}: {CLOSED if error.get('code') == NO_SESSION else error.get('message', 'refused')}")
        return dict(answer.get("result", {}))

    def dispatch(self, event: str, params: dict[str, Any]) -> None:
        """Call the handlers of an event of the page."""
        for handler in self._handlers.get(event, ()):
            handler(params)


Cdp: TypeAlias = "CDPSession | CdpSession"
"""A session with a page, ours or Playwright's."""


Send = Callable[[str, dict[str, Any]], Awaitable[Any]]


def raw_send(cdp: Cdp) -> Send:
    """Return a faster `send` of a session, without Playwright's search of every answer for handles to its own objects.

    Answers of CDP are plain JSON. For a page with a thousand elements the search takes as long as the rest of an observation. Where this
    version of Playwright is built differently, the session's own `send` is returned.
    """
    inner = getattr(getattr(cdp, "_impl_obj", None), "send", None)
    if inner is None:
        return cdp.send
    further = inspect.signature(inner).parameters.keys() - {"method", "params"}
    if not further <= {"timeout"}:
        return cdp.send
    limit = dict.fromkeys(further, 0)  # 0: no timeout, the default
    return lambda method, params: inner(method, params, **limit)


Button = Literal["left", "right"]
_BUTTON_BITS = {"left": 1, "right": 2}
"""Bits of the buttons in CDP's `buttons`."""


async def move_mouse(cdp: Cdp, x: float, y: float) -> None:
    """Move the pointer to a point in CSS pixels of the viewport. Return once the page has handled the event.

    Playwright's mouse does not know this position: move it before dragging with it.
    """
    await cdp.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y, "button": "none", "buttons": 0})


async def turn_wheel(cdp: Cdp, x: float, y: float, right: float, down: float) -> None:
    """Turn the mouse wheel at a point, by CSS pixels to the right and down. Return once the page has handled the event."""
    at = {"type": "mouseWheel", "x": x, "y": y, "button": "none"}
    await cdp.send("Input.dispatchMouseEvent", {**at, "deltaX": right, "deltaY": down})


async def click_mouse(cdp: Cdp, x: float, y: float, *, button: Button = "left", count: int = 1) -> None:
    """Press and release a button at the point that the pointer was moved to, `count` times in a row."""
    at = {"x": x, "y": y, "button": button}
    events = [
        {"type": kind, **at, "clickCount": number, "buttons": buttons, "force": force}
        for number in range(1, count + 1)
        for kind, buttons, force in (("mousePressed", _BUTTON_BITS[button], 0.5), ("mouseReleased", 0, 0))
    ]
    await asyncio.gather(*(cdp.send("Input.dispatchMouseEvent", event) for event in events))  # sent in this order at once
