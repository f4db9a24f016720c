"""Drags of the mouse from one element or point to another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.environments.browser.act.aiming import AimPoint, aiming
from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.frames import Point
from exact.environments.browser.act.press import ask_page, press, settled_aim
from exact.errors import ActionError


async def drag_element(context: ActionContext, one: str, other: str) -> None:
    """Drag an element onto another, which may be covered. Raises ActionError where both are not in view together."""
    mouse = context.tab.page.mouse  # Playwright's, which also drags draggable elements

    async def take(target: AimPoint) -> None:
        await mouse.move(target.x, target.y)
        await mouse.down()

    async def let_go(_: AimPoint) -> None:
        await mouse.up()

    async with aiming(context) as aims:
        await settled_aim(aims, one)
        end = await settled_aim(aims, other, covered=True)
        moved = len(aims.moved)
        start = await settled_aim(aims, one)
        if again := len(aims.moved) > moved:  # the other end moved too
            moved = len(aims.moved)
            end = await settled_aim(aims, other, covered=True)
        if start is None or end is None:
            raise ActionError("options of a drop-down cannot be dragged")
        if (again and len(aims.moved) > moved) or not (0 <= end.x < context.width and 0 <= end.y < context.height):
            raise ActionError(f"[{one}] and [{other}] are not in view together")
        async with _scroll_held(context):
            await press(aims, one, start, take, let_go)
            await _drop(context, (end.x, end.y))


async def drag_between(context: ActionContext, start: Point, end: Point) -> None:
    """Drag the mouse from one point, to which it was moved, to another."""
    await context.tab.page.mouse.move(*start)
    async with _scroll_held(context):
        await context.tab.page.mouse.down()
        await _drop(context, end)


@asynccontextmanager
async def _scroll_held(context: ActionContext) -> AsyncIterator[None]:
    """Undo what the browser scrolls by itself during a drag, which depends on how many frames it draws meanwhile."""
    await asyncio.gather(*(ask_page(context, frame, "act/hold_scroll") for frame in list(context.tab.frames)))
    try:
        yield
    finally:
        await asyncio.gather(*(ask_page(context, frame, "act/let_scroll") for frame in list(context.tab.frames)))


async def _drop(context: ActionContext, end: Point) -> None:
    mouse = context.tab.page.mouse
    await mouse.move(*end, steps=6)
    await mouse.move(*end)
    await mouse.up()
