"""The pointer, by the tab's own session: where that is a line of ours, a click takes half the time that it takes by Playwright.

Playwright's mouse does not know where this one was: who drags with it moves it first.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from exact.environments.browser.page.cdp import Cdp

Button = Literal["left", "right"]
_BITS = {"left": 1, "right": 2}
"""Of a button in what CDP calls `buttons`."""


async def move(cdp: Cdp, x: float, y: float) -> None:
    """To a point in CSS pixels of the viewport. Returns when the page has dealt with it."""
    await cdp.send("Input.dispatchMouseEvent", {"type": "mouseMoved", "x": x, "y": y, "button": "none", "buttons": 0})


async def click(cdp: Cdp, x: float, y: float, *, button: Button = "left", count: int = 1) -> None:
    """Press and let go where it was moved to, `count` times in a row."""
    at = {"x": x, "y": y, "button": button}
    events = [
        {"type": kind, **at, "clickCount": number, "buttons": held, "force": force}
        for number in range(1, count + 1)
        for kind, held, force in (("mousePressed", _BITS[button], 0.5), ("mouseReleased", 0, 0))
    ]
    await asyncio.gather(*(cdp.send("Input.dispatchMouseEvent", event) for event in events))  # sent in this order, answered together
