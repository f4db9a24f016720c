"""Scrolling of the parts of a page, through shadow roots and frames."""

from __future__ import annotations

from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.elements import call_on, locate
from exact.environments.browser.page.ids import NodeLocation
from exact.environments.browser.page.script import script


async def scroll_middle(context: ActionContext, way: str) -> bool:
    """Scroll what is in the middle of the viewport, or else what is around it. Return whether anything moved. `way`: up or down."""
    return await _scroll_around(context, "", await _middle(context), way, False)


async def scroll_around(context: ActionContext, id: str, way: str) -> bool:
    """Scroll the part of the page that an element is in, also one that only scripts scroll. Return whether anything moved.

    `way`: up, down, left or right. Raises ActionError where there is no such element.
    """
    return await _scroll_around(context, id, locate(context, id), way, True)


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
