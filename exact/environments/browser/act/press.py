"""Presses of the mouse on elements, which are stopped if something else has come under the pointer meanwhile.

Drags of the mouse from one element or point to another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from exact.environments.browser.act.action_context import ActionContext, Changed, PartialAction, Vanished
from exact.environments.browser.act.aiming import UNSURE, Aiming, AimPoint, aiming, is_vanished
from exact.environments.browser.page.cdp import Button, click_mouse, move_mouse, script_call
from exact.environments.browser.page.projection import Point
from exact.errors import ActionError

_MOST_AIMS = 6
"""Times that an element is aimed at before it is given up."""
_WAIT_LIMIT = 1.0
"""Seconds for which requests are waited for that scrolling or pointing started."""
_ANSWER_LIMIT = 0.1
"""Seconds after an event of the mouse within which the page answers a question about it; else it is asked again."""

Act = Callable[[AimPoint], Awaitable[None]]
"""Does something with the mouse at a point."""


class PressResult(NamedTuple):
    """Outcome of a press."""

    missed: str = ""
    """Reason why it missed the element and was stopped; empty if it hit."""
    slipped: bool = False
    """Whether the element moved away before the release."""
    changed: bool = False
    """Whether the words of the element changed before the press or the release, which was stopped."""


async def click_element(context: ActionContext, id: str, *, button: Button = "left", count: int = 1, held: Sequence[str] = ()) -> bool:
    """Click an element `count` times in a row. Return False, and do nothing, for an option of a closed drop-down.

    `held`: names of modifier keys that are held meanwhile.
    Raises ActionError if nothing was pressed, and PartialAction if the page may have noticed or the element moved away before the
    button was released.
    """
    slipped = False

    async def click(target: AimPoint) -> None:
        async with held_keys(context, held):
            await click_mouse(context.tab.cdp, target.x, target.y, button=button, count=count, held=held)

    async with aiming(context, presses=True) as aims:
        if (target := await settled_aim(aims, id)) is None:
            return False
        slipped = await press(aims, id, target, click, releases=count)
    if slipped:
        raise PartialAction(f"[{id}] moved away while it was pressed: no click reached it")
    return True


@asynccontextmanager
async def held_keys(context: ActionContext, held: Sequence[str]) -> AsyncIterator[None]:
    """Hold modifier keys down in the block. They are released, whatever happens in it, as long as the page is there."""
    from playwright.async_api import Error

    keyboard = context.tab.page.keyboard
    try:
        for key in held:
            await keyboard.down(key)
        yield
    finally:
        for key in reversed(held):
            with suppress(Error):  # the page was closed by the click
                await keyboard.up(key)


async def hover_element(context: ActionContext, id: str) -> AimPoint | None:
    """Move the pointer over an element, and follow the element if that moves it. Return its position.

    None for an option of a closed drop-down.
    """
    async with aiming(context) as aims:
        for _ in range(_MOST_AIMS):
            if (target := await settled_aim(aims, id)) is None:
                return None
            aims.pointed = True
            await move_pointer(context, target.x, target.y)
            if not await ask_page(context, target.frame, "act/moved_on", *target.seen):
                return target
    raise PartialAction(f"[{id}] moves away whenever it is pointed at")


async def press(aims: Aiming, id: str, target: AimPoint, act: Act, undo: Act | None = None, *, releases: int = 0) -> bool:
    """Point at an element and let `act` press there; aim again if something else came under the pointer first.

    `undo`: releases the button that a stopped `act` leaves pressed. `releases`: how often `act` releases the button. Return whether the
    element moved away before the release. Raises ActionError if nothing was pressed, Changed if the element may be another one now.
    """
    found: AimPoint | None = target
    result = PressResult("cannot be clicked")
    for _ in range(_MOST_AIMS):
        if found is None:
            break
        result = await _point(aims, found)
        if not (result.missed or result.changed):
            if undo:
                await act(found)
                result = await _disarm(aims.context, found, keep=True)
                if result.missed or result.changed:
                    await undo(found)
                await _disarm(aims.context, found)
            else:
                result = await _act_guarded(aims.context, found, act, releases)
            if not (result.missed or result.changed):
                return result.slipped
        if result.changed:
            raise Changed(f"[{id}] {UNSURE}")
        await _requests(aims.context)
        found = await settled_aim(aims, id)
    raise ActionError(f"[{id}] {result.missed}")


async def settled_aim(aims: Aiming, id: str, *, covered: bool = False) -> AimPoint | None:
    """Return a point at which an element is hit, once requests that scrolling into view started have ended. None as for `aim`."""
    target = await aims.aim(id, covered=covered)
    for _ in range(_MOST_AIMS):
        if target is None or not target.moved:
            break
        await _requests(aims.context)
        target = await aims.aim(id, all=True, covered=covered)
    return target


async def _point(aims: Aiming, target: AimPoint) -> PressResult:
    """Move the pointer to a target and guard the next press. Return the reason if the target is missed by now; nothing is guarded then."""
    aims.pointed = True
    result = await _point_and_arm(aims.context, target)
    if not aims.context.tab.traffic.is_idle:  # a picture that pointing loads has no size before, and may move the rest
        await _requests(aims.context)
        result = await _arm(aims.context, target)
    return result


async def move_pointer(context: ActionContext, x: float, y: float) -> None:
    """Move the pointer and wait for requests that this starts: a picture that has not arrived has no size and cannot be hit."""
    await move_mouse(context.tab.cdp, x, y)
    await context.tab.evaluate(f"void document.elementFromPoint({x}, {y})?.getBoundingClientRect()")
    await _requests(context)


async def _requests(context: ActionContext) -> None:
    if not context.tab.traffic.is_idle:
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_LIMIT):
                await context.tab.traffic.idle()


async def _point_and_arm(context: ActionContext, target: AimPoint) -> PressResult:
    """Move the pointer and guard the next press. In pages without frames both are sent at once, which saves a round trip."""
    move = move_mouse(context.tab.cdp, target.x, target.y)
    answer = None
    if _is_alone(context, target):
        answer = await _meanwhile(ask_page(context, target.frame, "act/arm", *target.seen, True), move)
    else:
        await move
    if answer and "changed" in answer:
        return PressResult(changed=True)
    return PressResult() if answer == {} else await _arm(context, target)


async def _meanwhile(question: Awaitable[Any], act: Awaitable[None]) -> Any:
    """Return the answer to a question that the page answers while it deals with an act; None if it does not come in time."""
    asked, doing = asyncio.ensure_future(question), asyncio.ensure_future(act)  # the page gets the question first
    try:
        await doing
        await asyncio.wait({asked}, timeout=_ANSWER_LIMIT)
        return asked.result() if asked.done() else None
    finally:
        for task in (asked, doing):
            task.cancel()
        await asyncio.gather(asked, doing, return_exceptions=True)


async def _arm(context: ActionContext, target: AimPoint) -> PressResult:
    """Guard the next press in all frames, unless the element is not hit even now."""
    others = _others(context, target)
    await asyncio.gather(*(ask_page(context, frame, "act/arm_against") for frame in others))
    answer = await ask_page(context, target.frame, "act/arm", *target.seen)
    if answer is None:
        raise Vanished("the page was left while it was pointed at: name an id from the present observation")
    if answer:
        await _disarm(context, target)
    return PressResult(str(answer.get("missed", "")), changed="changed" in answer)


async def _act_guarded(context: ActionContext, target: AimPoint, act: Act, releases: int) -> PressResult:
    """Act, and return the outcome of the press. The page is asked while it acts, which saves a round trip in pages without frames."""
    answer = None
    if _is_alone(context, target):
        answer = await _meanwhile(ask_page(context, target.frame, "act/disarm", True, releases), act(target))
    else:
        await act(target)
    clean = answer and not (answer["over"] or answer["slipped"] or answer["changed"])
    return PressResult() if clean else await _disarm(context, target)


async def _disarm(context: ActionContext, target: AimPoint, *, keep: bool = False) -> PressResult:
    """Ask the guards for the outcome of a press, and end them unless they are to be kept."""
    frames = [target.frame, *_others(context, target)]
    answers = await asyncio.gather(*(ask_page(context, frame, "act/disarm", keep) for frame in frames))
    found = [answer for answer in answers if answer]
    over = next((answer["over"] for answer in found if answer["over"]), "")
    missed = f"is covered by {over} when it is pressed" if over else ""
    return PressResult(missed, any(answer["slipped"] for answer in found), any(answer["changed"] for answer in found))


def _is_alone(context: ActionContext, target: AimPoint) -> bool:
    """Return whether no other frame can receive the mouse's events."""
    return not target.found.get("frame") and not _others(context, target)


def _others(context: ActionContext, target: AimPoint) -> list[str]:
    """Return the frames in which a press would be wrong."""
    return [] if target.found.get("frame") else [frame for frame in context.tab.frames if frame != target.frame]


async def ask_page(context: ActionContext, frame: str, name: str, *args: object) -> Any:
    """Return the answer of a script in a frame; None if its document is gone."""
    from playwright.async_api import Error

    try:
        return await context.tab.evaluate_in(frame, script_call(name, *args))
    except Error as error:
        if not is_vanished(error):
            raise
        return None


async def drag_element(context: ActionContext, one: str, other: str) -> None:
    """Drag an element onto another, which may be covered. Raises ActionError if both are not in view together."""
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
    """Undo the scrolling that the browser does by itself during a drag, which depends on how many frames it draws meanwhile."""
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
