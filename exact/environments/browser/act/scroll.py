"""Scrolling of the parts of a page, through shadow roots and frames, and the wheel of the mouse."""

from __future__ import annotations

from exact.environments.browser.act.aiming import call_on, locate
from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.press import hover_element
from exact.environments.browser.page.cdp import script, turn_wheel
from exact.environments.browser.page.ids import NodeLocation

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
