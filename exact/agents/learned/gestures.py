"""Gestures with the pointer: drags from points of elements, and what a drag is seen as."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from exact.action import Action
from exact.agents.builtin.page.page import Item
from exact.observation import Box

PUSH, PULL = 40.0, 20.0
"""Pixels by which an element is dragged, and by which its corner is."""
_INSET = 2.0
"""Pixels between a corner and the point where it is taken."""
_NEAR = 6.0
"""Most pixels from a corner at which a drag counts as one of the corner."""
Drag = tuple[float, float, float, float]
"""Where a drag begins, and where it ends."""


def boxed(items: Sequence[Item], roles: Container[str], most: int) -> Iterator[Box]:
    """Yield the boxes of the first elements of some roles that are drawn."""
    found = (item.element.box for item in items if item.role in roles and item.element.box and item.element.visible)
    yield from (box for _, box in zip(range(most), found, strict=False))


def pushes(box: Box) -> Iterator[Drag]:
    """Yield drags of an element to the left, right, up and down."""
    return _ways(box.x + box.width / 2, box.y + box.height / 2, PUSH)


def pulls(box: Box) -> Iterator[Drag]:
    """Yield drags of an element's lower right corner to the left, right, up and down."""
    return _ways(box.x + box.width - _INSET, box.y + box.height - _INSET, PULL)


def marks(box: Box) -> Drag:
    """Return the drag that selects the text in a box."""
    return box.x, box.y + _INSET, box.x + box.width + 1, box.y + box.height - _INSET


def drag_place(items: Sequence[Item], action: Action) -> tuple[Item | None, str, str]:
    """Return the smallest element at which a drag between points begins, the part of it, and the way: left, right, up, down or over it."""
    x, y, to_x, to_y = (float(value) for value in action.args)
    across = abs(to_x - x) >= abs(to_y - y)
    way = ("right" if to_x >= x else "left") if across else ("down" if to_y >= y else "up")
    under = [(item, box) for item in items if (box := item.element.box) and item.element.visible and _holds(box, x, y)]
    if not under:
        return None, "", way
    item, box = min(under, key=lambda each: each[1].width * each[1].height)
    if box.x + box.width - x <= _NEAR and box.y + box.height - y <= _NEAR:
        return item, "end", way
    if x - box.x <= _NEAR and y - box.y <= _NEAR:
        return item, "start", "over" if _holds(box, to_x, to_y) else way
    return item, "middle", way


def _ways(x: float, y: float, length: float) -> Iterator[Drag]:
    for dx, dy in ((-length, 0.0), (length, 0.0), (0.0, -length), (0.0, length)):
        yield x, y, max(x + dx, 0.0), max(y + dy, 0.0)


def _holds(box: Box, x: float, y: float) -> bool:
    return box.x - _INSET <= x <= box.x + box.width + _INSET and box.y - _INSET <= y <= box.y + box.height + _INSET
