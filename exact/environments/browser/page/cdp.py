"""A page's CDP session on a line of ours: a command takes half the time that it takes by way of Playwright's driver."""

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
"""Sends a command; the message that answers it. Raises EnvironmentFailure where the browser is gone."""

GONE = -32001
"""The code by which CDP says that there is no such session."""
CLOSED = "the page, its context or the browser has been closed"


class CdpSession:
    """`on`, `send` and what they raise are as in Playwright's CDPSession. Made by `CdpConnection.attach`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._handlers: defaultdict[str, list[Callable[[dict[str, Any]], object]]] = defaultdict(list)

    def on(self, event: str, handler: Callable[[dict[str, Any]], object]) -> None:
        """Call a handler with each event of that name from now on."""
        self._handlers[event].append(handler)

    async def send(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a command. Raises Playwright's Error where it is refused, or the page is gone."""
        from playwright.async_api import Error

        try:
            answer = await self._ask(method, params or {})
        except EnvironmentFailure as lost:
            raise Error(f"{method}: {CLOSED}: {lost}") from lost
        if error := answer.get("error"):
            raise Error(f"{method}: {CLOSED if error.get('code') == GONE else error.get('message', 'refused')}")
        return dict(answer.get("result", {}))

    def hear(self, event: str, params: dict[str, Any]) -> None:
        """One event of the page."""
        for handler in self._handlers.get(event, ()):
            handler(params)


Cdp: TypeAlias = "CDPSession | CdpSession"
"""What a page is asked through."""


Send = Callable[[str, dict[str, Any]], Awaitable[Any]]


def raw_send(cdp: Cdp) -> Send:
    """`send` of a session, without Playwright's search of every answer for objects of its own.

    Answers of the DevTools protocol are JSON and have none; of a page with a thousand elements the search takes as long as all else that
    this process does to observe it. Where Playwright is built otherwise it is the session's own `send`.
    """
    inner = getattr(getattr(cdp, "_impl_obj", None), "send", None)
    if inner is None:
        return cdp.send
    further = inspect.signature(inner).parameters.keys() - {"method", "params"}
    if not further <= {"timeout"}:
        return cdp.send
    limit = dict.fromkeys(further, 0)  # 0: no limit, as when none is given
    return lambda method, params: inner(method, params, **limit)


Button = Literal["left", "right"]
_BITS = {"left": 1, "right": 2}
"""Of a button in what CDP calls `buttons`."""


async def move_mouse(cdp: Cdp, x: float, y: float) -> None:
    """To a point in CSS pixels of the viewport. Returns when the page has dealt with it."""
    await cdp.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y, "button": "none", "buttons": 0})


async def click_mouse(cdp: Cdp, x: float, y: float, *, button: Button = "left", count: int = 1) -> None:
    """Press and let go where it was moved to, `count` times in a row."""
    at = {"x": x, "y": y, "button": button}
    events = [
        {"type": kind, **at, "clickCount": number, "buttons": held, "force": force}
        for number in range(1, count + 1)
        for kind, held, force in (("mousePressed", _BITS[button], 0.5), ("mouseReleased", 0, 0))
    ]
    await asyncio.gather(*(cdp.send("Input.dispatchMouseEvent", event) for event in events))  # sent in this order, answered together
