"""Points of a frame's content are mapped to where they are drawn, and back; its elements are observed there."""

import msgspec
import pytest

from exact.environments.browser.page.projection import Projection
from exact.observation import Element
from tests.conftest import Visit
from tests.environments.browser.pages import find, look

QUADS = {
    "moved": (10, 20, 110, 20, 110, 70, 10, 70),
    "turned": (50, 0, 100, 50, 50, 100, 0, 50),
    "at an angle": (0, 0, 80, 20, 80, 60, 0, 100),
}


@pytest.mark.parametrize("quad", QUADS.values(), ids=QUADS)
def test_corners_are_mapped_to_corners_and_back(quad: tuple[float, ...]) -> None:
    drawn = Projection.onto(quad, 200, 100)
    for corner, own in enumerate(((0, 0), (200, 0), (200, 100), (0, 100))):
        assert drawn(own) == pytest.approx(quad[2 * corner : 2 * corner + 2])
        assert drawn.inverse(drawn(own)) == pytest.approx(own, abs=1e-6)


def test_the_middle_of_a_frame_that_is_seen_at_an_angle_is_nearer_its_far_edge() -> None:
    x, y = Projection.onto(QUADS["at an angle"], 200, 100)((100, 50))
    assert x > 40 and 40 < y < 60


def test_a_frame_without_a_size_shows_no_point() -> None:
    assert Projection.onto((5, 5, 5, 5, 5, 5, 5, 5), 200, 100)((1, 1)) == (float("inf"), float("inf"))


BUTTON = "<body style=margin:0><button style='position:absolute;left:10px;top:20px;width:60px;height:20px'>Go</button>"
STYLES = {
    "border and padding": ("border:10px solid;padding:5px", (25, 35, 60, 20)),
    "moved": ("border:0;transform:translate(100px,50px)", (110, 70, 60, 20)),
    "scaled": ("border:4px solid;transform:scale(.5);transform-origin:0 0", (7, 12, 30, 10)),
    "rotated": ("border:0;transform:rotate(90deg);transform-origin:0 0;margin-left:300px", (260, 10, 20, 60)),
    "larger than the page": ("border:0;width:4000px;transform:scale(.1);transform-origin:0 0", (1, 2, 6, 2)),
}


def frame(inner: str, style: str) -> str:
    quoted = inner.replace("&", "&amp;").replace('"', "&quot;")
    return f'<body style=margin:0><iframe style="display:block;width:200px;height:100px;{style}" srcdoc="{quoted}"></iframe>'


def place(element: Element) -> tuple[float, ...]:
    assert element.box
    return msgspec.structs.astuple(element.box)


@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.parametrize("how", STYLES)
async def test_an_element_in_a_frame_has_the_box_that_is_drawn(visit: Visit, how: str) -> None:
    style, box = STYLES[how]
    async with visit(frame(BUTTON, style)) as (_, seen):
        assert place(find(seen, "Go")) == pytest.approx(box) and find(seen, "Go").visible


@pytest.mark.asyncio(loop_scope="session")
async def test_an_element_in_frames_in_each_other_has_the_box_that_is_drawn(visit: Visit) -> None:
    inner = frame(BUTTON, "border:10px solid;padding:5px;transform:translate(50px,40px) scale(.5);transform-origin:0 0")
    async with visit(frame(inner, "border:0;width:600px;height:400px;transform:scale(.5);transform-origin:0 0")) as (environment, seen):
        assert place(find(seen, "Go")) == pytest.approx((31.25, 28.75, 15, 5))
        assert "focused" in find(await look(environment, f"click [{find(seen, 'Go').id}]"), "Go").states


@pytest.mark.asyncio(loop_scope="session")
async def test_an_element_that_a_scaled_frame_does_not_show_is_out_of_view(visit: Visit) -> None:
    async with visit(frame(f"<div style=height:180px></div>{BUTTON.replace('20px;width', '150px;width')}", STYLES["scaled"][0])) as (
        _,
        seen,
    ):
        assert not find(seen, "Go").visible
