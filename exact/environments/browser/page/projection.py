"""The place at which the content of a frame is drawn: the map between its coordinates and those of the page, which transforms may bend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from exact.observation import Box

Point = tuple[float, float]
Row = tuple[float, float, float]


class Projection(NamedTuple):
    """A projective map of the plane, as the rows of its matrix."""

    rows: tuple[Row, Row, Row]

    def __call__(self, point: Point) -> Point:
        """Return the image of a point."""
        x, y, scale = (a * point[0] + b * point[1] + c for a, b, c in self.rows)
        return (x / scale, y / scale) if scale else (float("inf"), float("inf"))

    @property
    def is_flat(self) -> bool:
        """Whether it maps a rectangle onto an area, and not onto a line."""
        return any(any(row) for row in self.rows)

    @property
    def inverse(self) -> Projection:
        """The inverse map. A map onto a line has no inverse: all points go far away then."""
        (a, b, c), (d, e, f), (g, h, i) = self.rows
        return Projection(
            (
                (e * i - f * h, c * h - b * i, b * f - c * e),
                (f * g - d * i, a * i - c * g, c * d - a * f),
                (d * h - e * g, b * g - a * h, a * e - b * d),
            )
        )

    @classmethod
    def onto(cls, quad: Sequence[float], width: float, height: float) -> Projection:
        """Map a rectangle of a size, its first corner at 0, 0, onto four corners `x, y, x, y, ...` in the same order (Heckbert 1989)."""
        x0, y0, x1, y1, x2, y2, x3, y3 = quad
        dx1, dx2, sx = x1 - x2, x3 - x2, x0 - x1 + x2 - x3
        dy1, dy2, sy = y1 - y2, y3 - y2, y0 - y1 + y2 - y3
        area = dx1 * dy2 - dx2 * dy1
        if not (area and width and height):
            return cls(((0.0, 0.0, 0.0),) * 3)
        g, h = (sx * dy2 - dx2 * sy) / area, (dx1 * sy - sx * dy1) / area
        return cls(
            (
                ((x1 - x0 + g * x1) / width, (x3 - x0 + h * x3) / height, x0),
                ((y1 - y0 + g * y1) / width, (y3 - y0 + h * y3) / height, y0),
                (g / width, h / height, 1.0),
            )
        )

    @classmethod
    def moved(cls, x: float, y: float) -> Projection:
        """Return the map that moves all points by CSS pixels to the right and down."""
        return cls(((1.0, 0.0, x), (0.0, 1.0, y), (0.0, 0.0, 1.0)))

    @classmethod
    def of_frame(cls, model: Mapping[str, Any]) -> Projection:
        """Return the map from a frame's viewport to that of the page, given the answer of `DOM.getBoxModel` for the frame's element."""
        border, content = model["border"], model["content"]
        sides = zip((model["width"], model["height"]), _edges(border), _edges(content), strict=True)
        width, height = (size * inner / outer if outer else 0.0 for size, outer, inner in sides)
        return cls.onto(content, width, height)

    def box(self, given: Box) -> Box:
        """Return the box around the image of a box."""
        left, top, right, bottom = given.x, given.y, given.x + given.width, given.y + given.height
        corners = [self(each) for each in ((left, top), (right, top), (right, bottom), (left, bottom))]
        xs, ys = [x for x, _ in corners], [y for _, y in corners]
        return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def _edges(quad: Sequence[float]) -> tuple[float, float]:
    """Return the lengths of the upper and the left edge of four corners."""
    x0, y0, x1, y1, _, _, x3, y3 = quad
    return math.hypot(x1 - x0, y1 - y0), math.hypot(x3 - x0, y3 - y0)
