"""Gestures with the pointer."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from exact.action import Action
from exact.agents.builtin.page.page import Item, read_page
from exact.agents.learned.tokens import Drag, boxed, drag_place, marks, pulls, pushes
from exact.environments.browser.act.grammar import PAGE_ACTIONS
from exact.observation import Box, Element, Observation

BOX = Box(100, 50, 80, 40)


def items(*boxes: Box) -> tuple[Item, ...]:
    return read_page(
        Observation(text="", elements=tuple(Element(id=str(n), role="image", box=box) for n, box in enumerate(boxes))), ""
    ).items


def drag(args: Drag) -> Action:
    return PAGE_ACTIONS.action("drag_at", *args)


@pytest.mark.parametrize(
    ("drags", "part", "ways"),
    [(pushes(BOX), "middle", "left right up down"), (pulls(BOX), "end", "left right up down"), ([marks(BOX)], "start", "over")],
)
def test_a_drag_is_seen_as_the_part_it_begins_at_and_its_way(drags: Iterable[Drag], part: str, ways: str) -> None:
    seen = [drag_place(items(Box(0, 0, 400, 400), BOX), drag(each)) for each in drags]
    assert [(item.index, at, way) for item, at, way in seen if item] == [(1, part, way) for way in ways.split()]


def test_a_drag_beside_all_elements_has_a_way_alone() -> None:
    assert drag_place(items(BOX), drag((5, 5, 5, 1))) == (None, "", "up")


def test_what_is_not_drawn_has_no_box() -> None:
    seen = (Element(id="1", role="image"), Element(id="2", role="image", box=BOX, visible=False), Element(id="3", role="image", box=BOX))
    assert list(boxed(read_page(Observation(text="", elements=seen), "").items, {"image"}, 4)) == [BOX]
