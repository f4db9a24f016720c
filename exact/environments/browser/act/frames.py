"""Where the content of a frame is drawn: the map between its own coordinates and those of the page, which transforms may bend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Point = tuple[float, float]
Row = tuple[float, float, float]


class Projection(NamedTuple):
    """A projective map of the plane, as the rows of its matrix."""

    rows: tuple[Row, Row, Row]

    def __call__(self, point: Point) -> Point:
        """Return where a point lies after the map."""
        x, y, scale = (a * point[0] + b * point[1] + c for a, b, c in self.rows)
        return (x / scale, y / scale) if scale else (float("inf"), float("inf"))

    @property
    def inverse(self) -> Projection:
        """The map back. A map onto a line has none: all points go far away then."""
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
