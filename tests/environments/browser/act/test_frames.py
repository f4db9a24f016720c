"""Points of a frame's content are mapped to where they are drawn, and back."""

import pytest

from exact.environments.browser.act.aiming import Projection

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
