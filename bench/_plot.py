"""Line charts as SVG: a few series over a few points, the x axis logarithmic to base 2; or points with intervals on two linear axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 60, 40, 170, 50
BESIDE = 10.0
"""Distance of points that are not joined and have one x, across."""
COLOURS = ("#1b6ca8", "#c8553d", "#3f8f4f", "#8a4fa3", "#b8860b", "#2f8f9d", "#a33f5f", "#555555", "#6b8e23", "#d2691e")


class Point(NamedTuple):
    """A point with the interval of its y, and a word beside it. A hollow one is of another kind."""

    x: float
    y: float
    low: float
    high: float
    label: str = ""
    hollow: bool = False


class Series(NamedTuple):
    """Points of one name, joined by a line from left to right or not."""

    name: str
    points: Sequence[Point]
    joined: bool = True


def plot(lines: Mapping[str, Sequence[float]], xs: Sequence[int], *, x: str, y: str, title: str) -> str:
    """Return the chart as SVG. Values are in [0, 1]; xs are above 0 and ascending."""

    def across(value: float) -> float:
        low, high = math.log2(xs[0]), math.log2(xs[-1])
        return LEFT + (math.log2(value) - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - value * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    for value in xs:
        parts.append(f'<text x="{across(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{value}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x)}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">{escape(y)}</text>')
    ends = _apart([up(values[-1]) for values in lines.values()])
    for (name, values), end, colour in zip(lines.items(), ends, COLOURS, strict=False):
        points = " ".join(f"{across(at):.1f},{up(value):.1f}" for at, value in zip(xs, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def relation(series: Sequence[Series], *, x: str, y: str, title: str, xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return points with intervals as SVG, within the first and the last tick of each axis.

    Points of series that are not joined stand beside each other if they have one x.
    """

    def across(value: float) -> float:
        return LEFT + (value - xs[0]) / (xs[-1] - xs[0]) * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - (min(max(value, ys[0]), ys[-1]) - ys[0]) / (ys[-1] - ys[0]) * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
    ]
    for tick in ys:
        colour = "#888" if tick == 0 else "#ddd"
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="{colour}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    for tick in xs:
        parts.append(f'<text x="{across(tick):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{tick:.1f}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x)}</text>')
    parts.append(f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">{escape(y)}</text>')
    taken = list[float]()
    for at, (each, colour) in enumerate(zip(series, COLOURS, strict=False)):
        points = sorted(each.points)
        if each.joined:
            line = " ".join(f"{across(point.x):.1f},{up(point.y):.1f}" for point in points)
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in points:
            here = across(point.x)
            while not each.joined and any(abs(here - other) < 1 for other in taken):
                here += BESIDE
            taken.append(here)
            where = f'x1="{here:.1f}" x2="{here:.1f}" y1="{up(point.low):.1f}" y2="{up(point.high):.1f}"'
            parts.append(f'<line {where} stroke="{colour}" stroke-opacity="0.5"/>')
            filled = f'fill="white" stroke="{colour}" stroke-width="2"' if point.hollow else f'fill="{colour}"'
            parts.append(f'<circle cx="{here:.1f}" cy="{up(point.y):.1f}" r="4" {filled}/>')
            if point.label:
                parts.append(f'<text x="{here + 7:.1f}" y="{up(point.y) - 6:.1f}" fill="{colour}">{escape(point.label)}</text>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{TOP + 20 + 20 * at}" fill="{colour}">{escape(each.name)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _apart(heights: Sequence[float], least: float = 15.0) -> list[float]:
    """Heights moved down so far that labels do not overlap, in the order given."""
    placed, last = dict[int, float](), -math.inf
    for i in sorted(range(len(heights)), key=lambda i: heights[i]):
        last = max(heights[i], last + least)
        placed[i] = last
    return [placed[i] for i in range(len(heights))]
