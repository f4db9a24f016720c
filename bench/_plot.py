"""A line chart as SVG: a few series over a few points, the x axis logarithmic to base 2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 760, 420, 60, 40, 170, 50
COLOURS = ("#1b6ca8", "#c8553d", "#3f8f4f", "#8a4fa3", "#b8860b", "#2f8f9d", "#a33f5f", "#555555", "#6b8e23", "#d2691e")


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


def _apart(heights: Sequence[float], least: float = 15.0) -> list[float]:
    """Heights moved down so far that labels do not overlap, in the order given."""
    placed, last = dict[int, float](), -math.inf
    for i in sorted(range(len(heights)), key=lambda i: heights[i]):
        last = max(heights[i], last + least)
        placed[i] = last
    return [placed[i] for i in range(len(heights))]
