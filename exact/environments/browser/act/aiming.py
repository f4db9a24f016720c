"""Points at which elements are hit, found by scrolling them into view and testing what is there, through all frames around them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from exact.environments.browser.act.context import ActionContext
from exact.environments.browser.act.elements import accepted, call_on, is_vanished, locate
from exact.environments.browser.act.frames import Point, Projection
from exact.environments.browser.act.partial import PartialAction, Vanished
from exact.environments.browser.page.ids import NodeLocation
from exact.environments.browser.page.script import script
from exact.errors import ActionError

_WAYS = 5
"""Number of ways in which aim.js scrolls."""


class AimPoint(NamedTuple):
    """A point at which an element is hit."""

    x: float
    y: float
    """The point in CSS pixels of the page's viewport."""
    frame: str
    """CDP id of the element's frame."""
    found: dict[str, Any]
    """What aim.js returned, with the point in the viewport of the frame."""
    moved: bool
    """Whether anything was scrolled for it."""

    @property
    def seen(self) -> tuple[object, ...]:
        """The arguments of arm.js."""
        return tuple(self.found.get(each) for each in ("x", "y", "rank", "place"))


class _Frame(NamedTuple):
    """A frame around an element."""

    id: str
    owner: NodeLocation
    """Its element in the document around it."""


class Aiming:
    """Finds the points of elements. It remembers what it scrolled."""

    def __init__(self, context: ActionContext) -> None:
        self.context = context
        self.moved = list[tuple[str, NodeLocation, Any]]()
        """Scroll positions from before, each with the element whose surroundings were scrolled."""
        self.pointed = False
        """Whether the pointer was moved, which a page may have seen."""

    async def aim(self, id: str, *, all: bool = False, covered: bool = False) -> AimPoint | None:
        """Return a point at which an element is hit, after scrolling it into view; None for an option of a closed drop-down.

        `all`: try all points before scrolling. `covered`: accept a point where something else lies on top. Raises ActionError where there
        is no such point.
        """
        location, had = locate(self.context, id), len(self.moved)
        frames, way, refused = await self._frames(id, location), 0, ""
        while way < _WAYS:
            if way and frames and len(self.moved) == had:
                for frame in frames:
                    await self._ask(id, frame.owner, "act/mark")
            found = await self._ask(id, location, "act/aim", way, all, covered)
            if "option" in found:
                return None
            point, refused = await self._outward(id, frames, (found["x"], found["y"]), covered)
            if not refused:
                return AimPoint(*point, location.frame, found, len(self.moved) > had)
            way = found["way"] + 1
        raise ActionError(f"[{id}] {refused}")

    async def scroll_back(self) -> None:
        """Undo all scrolling, as far as the elements are still there."""
        with suppress(ActionError):
            for id, location, before in reversed(self.moved):
                await call_on(self.context, id, location, script("act/scroll_back"), before)

    async def _frames(self, id: str, location: NodeLocation) -> list[_Frame]:
        """Return the frames around the node of an element, from the inside out. Raises ActionError where one has vanished."""
        from playwright.async_api import Error

        frames, frame = list[_Frame](), location.frame
        while frame != self.context.tab.main_frame:
            try:
                outer, owner = await self.context.tab.owner(frame)
            except Error as error:
                if not is_vanished(error):
                    raise
                raise Vanished(f"[{id}] has vanished with its frame: name an id from the present observation") from error
            frames.append(_Frame(frame, NodeLocation(location.tab, location.document, owner, outer)))
            frame = outer
        return frames

    async def _outward(self, id: str, frames: Sequence[_Frame], own: Point, covered: bool) -> tuple[Point, str]:
        """Return where a point of the innermost frame is in the page's viewport, and why it is not hit there; empty where it is."""
        if not frames:
            return own, ""
        drawn = [await self._projection(id, frame) for frame in frames]
        point = drawn[0](own)
        if covered:
            return point, ""
        if not (0 <= point[0] < self.context.width and 0 <= point[1] < self.context.height):
            return point, "cannot be brought into view: its frame shows no more of it"
        outer = [*(each.inverse(point) for each in drawn[1:]), point]
        for frame, around in zip(frames, outer, strict=True):
            answer = await call_on(self.context, id, frame.owner, script("act/shows_frame"), *around)
            if "refused" in answer:
                return point, str(answer["refused"])
        return point, ""

    async def _projection(self, id: str, frame: _Frame) -> Projection:
        """Return the map from a frame's viewport to that of the page."""
        from playwright.async_api import Error

        try:
            box = await self.context.tab.cdp.send("DOM.getBoxModel", {"backendNodeId": frame.owner.backend})
        except Error as error:
            raise ActionError(f"[{id}] is in a frame that is not shown") from error
        width, height = await self.context.tab.evaluate_in(frame.id, "[innerWidth, innerHeight]")
        return Projection.onto(box["model"]["content"], width, height)

    async def _ask(self, id: str, location: NodeLocation, name: str, *args: Any) -> dict[str, Any]:
        answer = await call_on(self.context, id, location, script(name), *args)
        if before := answer.get("before"):
            self.moved.append((id, location, before))
        return accepted(id, answer)


@asynccontextmanager
async def aiming(context: ActionContext) -> AsyncIterator[Aiming]:
    """Yield an Aiming. On an ActionError scroll back all that it scrolled. Raise PartialAction where the page may have noticed anything."""
    aims = Aiming(context)
    try:
        yield aims
    except ActionError as error:
        if not (aims.moved or aims.pointed):
            raise
        await aims.scroll_back()
        raise PartialAction(str(error)) from error
