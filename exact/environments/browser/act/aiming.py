"""Points at which elements are hit, found by scrolling them into view and hit-testing, through all frames around them.

Elements of a page as the targets of actions: their nodes, and scripts that run on them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

from exact.environments.browser.act.action_context import ActionContext, Changed, PartialAction, Vanished
from exact.environments.browser.page.cdp import script
from exact.environments.browser.page.ids import NodeLocation
from exact.environments.browser.page.projection import Point, Projection
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
    """The answer of aim.js, with the point in the viewport of the frame."""
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
    """Finds the points of elements. It remembers its scrolling."""

    def __init__(self, context: ActionContext, *, presses: bool = False) -> None:
        """Aim in the tab of a context. `presses`: for a press, which takes the focus from a field and may so enable its target."""
        self.context = context
        self.moved = list[tuple[str, NodeLocation, Any]]()
        """Scroll positions from before, each with the element whose surroundings were scrolled."""
        self.pointed = False
        """Whether the pointer was moved, or a field lost the focus, which a page may have seen."""
        self.presses = presses

    async def aim(self, id: str, *, all: bool = False, covered: bool = False) -> AimPoint | None:
        """Return a point at which an element is hit, after scrolling it into view; None for an option of a closed drop-down.

        `all`: try all points before scrolling. `covered`: accept a point that something else covers. Raises ActionError if there is no such
        point.
        """
        location, had = locate(self.context, id), len(self.moved)
        frames, way, refused = await self._frames(id, location), 0, ""
        while way < _WAYS:
            if way and frames and len(self.moved) == had:
                for frame in frames:
                    await self._ask(id, frame.owner, "act/mark")
            found = await self._ask(id, location, "act/aim", way, all, covered, self.presses)
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
        """Return the frames around the node of an element, from the inside out. Raises ActionError if one has vanished."""
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
        """Map a point of the innermost frame to the page's viewport. Return it and the reason why it is not hit there, empty if it is."""
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
        self.pointed = self.pointed or answer.get("left", False)
        return accepted(id, answer)


@asynccontextmanager
async def aiming(context: ActionContext, *, presses: bool = False) -> AsyncIterator[Aiming]:
    """Yield an Aiming. On an ActionError scroll back all that it scrolled. Raise PartialAction if the page may have noticed anything.

    Vanished stays as it is: the caller observes the page again.
    """
    aims = Aiming(context, presses=presses)
    try:
        yield aims
    except Vanished:
        await aims.scroll_back()
        raise
    except ActionError as error:
        if not (aims.moved or aims.pointed):
            raise
        await aims.scroll_back()
        raise PartialAction(str(error)) from error


UNSURE = "changes all the time, so it may not be the element that was observed: name an id from the present observation"
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
    """Return the node of an element id. Raises ActionError if there is none on the present page."""
    location = context.ids.location(id)
    if location is None:
        raise ActionError(f"there is no element [{id}]: name an id from the observation")
    if location.tab != context.tab.index or location.document != context.tab.traffic.documents:
        raise Vanished(f"[{id}] is on a page that is gone: name an id from the present observation")
    return location


async def ask_element(context: ActionContext, id: str, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer. Raises ActionError if the script refuses, or there is no such element."""
    return accepted(id, await call_on(context, id, locate(context, id), function, *args))


def accepted(id: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a script. Raises ActionError if the script refuses, Vanished if its element is no longer in a document."""
    if "vanished" in answer:
        raise Vanished(f"[{id}] {_GONE}")
    if "refused" in answer:
        raise ActionError(f"[{id}] {answer['refused']}")
    return answer


async def call_on(context: ActionContext, id: str, location: NodeLocation, function: str, *args: Any) -> dict[str, Any]:
    """Call a script on an element and return its answer.

    The first call on a node checks in the same moment that its element is the one that was observed. Raises Changed if that is not certain,
    ActionError if the element has vanished, PartialAction if it vanished while the script ran.
    """
    from playwright.async_api import Error

    if (check := context.checks.pop(location, None)) is not None:
        function = f"function(check, ...given) {{ return ({script('act/same')}).call(this, check) ?? ({function}).apply(this, given) }}"
        args = (check, *args)
    try:
        answer = dict(await context.tab.call(location.backend, location.frame, function, *args))
    except Error as error:
        if not is_vanished(error):
            raise
        kind = PartialAction if "callFunctionOn" in str(error) else Vanished
        raise kind(f"[{id}] {_GONE}") from error
    if "changed" in answer:
        raise Changed(f"[{id}] {UNSURE}")
    return answer
