"""Success against cost as SVG: the share of attempts that an agent solved at a cost of at most x."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 890, 440, 60, 40, 300, 50
COLOURS = ("#1b6ca8", "#c8553d", "#3f8f4f", "#8a4fa3", "#b8860b", "#2f8f9d", "#a33f5f", "#555555", "#6b8e23", "#d2691e")
Points = Sequence[tuple[float, float]]
_Scale = Callable[[float], float]


def curves(lines: Mapping[str, Points], *, x: str, title: str, published: Mapping[str, float] | None = None) -> str:
    """Return an SVG chart of step functions on a logarithmic axis of cost.

    `lines`: by name, the points (cost, share) at which the share rises; a cost of 0 is drawn at the left end. `published`: published shares
    that were not re-run, drawn as dashed grey lines; the second line of a name says what the share is of.
    """
    costs = [cost for points in lines.values() for cost, _ in points if cost > 0]
    low, high = _decades(min(costs, default=1.0), max(costs, default=1.0))

    def across(cost: float) -> float:
        return LEFT + (math.log10(max(cost, low)) - math.log10(low)) / (math.log10(high) - math.log10(low)) * (WIDTH - LEFT - RIGHT)

    def up(share: float) -> float:
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    parts = [*_frame(x, title), *_grid(low, high, across, up)]
    published = published or {}
    shares = [*(points[-1][1] if points else 0.0 for points in lines.values()), *published.values()]
    ends = spread_labels([up(share) for share in shares], [14.0] * len(lines) + [26.0] * len(published))
    for (name, points), end, colour in zip(lines.items(), ends, COLOURS * (len(lines) // len(COLOURS) + 1), strict=False):
        parts.append(f'<path d="{_steps(points, across, up)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" fill="{colour}">{escape(name)}</text>')
    for (name, share), end in zip(published.items(), ends[len(lines) :], strict=True):
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(share):.1f}" y2="{up(share):.1f}" stroke="#999" stroke-dasharray="4 4"/>'
        )
        who, _, where = name.partition("\n")
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 4:.1f}" fill="#777" font-size="10">{escape(who)}</text>')
        note = escape(", ".join(filter(None, (where, "not re-run"))))
        parts.append(f'<text x="{WIDTH - RIGHT + 10}" y="{end + 15:.1f}" fill="#777" font-size="9">{note}</text>')
    return "\n".join([*parts, "</svg>\n"])


def spread_labels(positions: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Return the positions of labels, moved down where they would overlap. `heights` gives the height of each label, in pixels."""
    placed, free = dict[int, float](), -math.inf
    for i in sorted(range(len(positions)), key=lambda i: positions[i]):
        placed[i] = max(positions[i], free)
        free = placed[i] + heights[i]
    return [placed[i] for i in range(len(positions))]


def _decades(low: float, high: float) -> tuple[float, float]:
    return 10.0 ** math.floor(math.log10(low)), 10.0 ** max(math.ceil(math.log10(high)), math.floor(math.log10(low)) + 1)


def _frame(x: str, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x)}, at most</text>',
        f'<text x="16" y="{HEIGHT / 2}" transform="rotate(-90 16 {HEIGHT / 2})" text-anchor="middle">share of attempts solved</text>',
    ]


def _grid(low: float, high: float, across: _Scale, up: _Scale) -> list[str]:
    parts = []
    for tick in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(tick):.1f}" y2="{up(tick):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{up(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    decade = low
    while decade <= high * 1.001:
        parts.append(f'<text x="{across(decade):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{decade:g}</text>')
        decade *= 10
    return parts


def _steps(points: Points, across: _Scale, up: _Scale) -> str:
    path = [f"M{LEFT},{up(0):.1f}"]
    for cost, share in points:
        path.append(f"H{across(cost):.1f}V{up(share):.1f}")
    return "".join([*path, f"H{WIDTH - RIGHT}"])
