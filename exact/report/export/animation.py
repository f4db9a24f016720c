"""The committed path of an attempt as an animation: an SVG without scripts that shows one screenshot after the other."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from exact.errors import UsageError
from exact.observation import Box
from exact.report.model.data import Picture
from exact.report.model.model import pictures
from exact.report.model.reading import Reading
from exact.report.model.text import in_words

SECONDS = 1.6
"""Seconds for which each state is shown; the last one is shown twice as long."""
_BAND = 30
"""Height of the caption below the picture, in pixels."""


class Frame(NamedTuple):
    """State on the committed path, with the action that was taken there."""

    screenshot: str
    """Name of its screenshot among the blobs; empty if there is none."""
    caption: str
    boxes: tuple[Box, ...] = ()
    """Boxes of the elements that are acted on."""


def trajectory(reading: Reading, *, size: int = 4_000_000) -> str:
    """Return the text of the SVG, of about `size` bytes at most. Raises UsageError if the attempt has no screenshots."""
    frames = list(path_frames(reading))
    found = pictures([frame.screenshot for frame in frames], reading.blobs, size, reading.warnings)
    shown = [(found[frame.screenshot], frame.caption) for frame in frames if frame.screenshot in found]
    if not shown:
        raise UsageError("the attempt has no screenshots: run with browser.screenshots on")
    width, height = max(picture.width for picture, _ in shown), max(picture.height for picture, _ in shown)
    total = SECONDS * (len(shown) + 1)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height + _BAND}" width="{width}" font-family="sans-serif">',
            f'<rect width="{width}" height="{height + _BAND}" fill="#fff"/>',
            *(_frame(i, len(shown), picture, caption, height, total) for i, (picture, caption) in enumerate(shown)),
            "</svg>",
        ]
    )


def path_frames(reading: Reading) -> Iterator[Frame]:
    """Yield the states on the path. An ended state has no screenshot."""
    for step, (decided, committed, root) in enumerate(reading.steps, 1):
        if committed is not None and not committed.refused:
            action, seen = root.edges[decided.decision.edges[0]].action, reading.seen(root)
            boxes = tuple(each.box for each in (seen.elements if seen else ()) if each.id in action.elements and each.box)
            yield Frame(root.screenshot, f"{step}. {in_words(action, seen)}", boxes)
    last = reading.state.search.tree.root
    if not last.leaf:
        yield Frame(last.screenshot, "the end")


def _frame(index: int, count: int, picture: Picture, caption: str, height: int, total: float) -> str:
    """Return the SVG of one state, visible during its share of the time only."""
    begins, ends = index * SECONDS / total, 1.0 if index == count - 1 else (index + 1) * SECONDS / total
    times = f"0;{begins:.4f};{ends:.4f}" if 0 < ends < 1 else f"0;{begins:.4f}"
    values = "hidden;visible;hidden" if 0 < ends < 1 else "hidden;visible"
    if index == 0:
        times, values = (f"0;{ends:.4f}", "visible;hidden") if count > 1 else ("0", "visible")
    clock = f'dur="{total:g}s" repeatCount="indefinite" keyTimes="{times}" values="{values}"'
    moves = f'<animate attributeName="visibility" calcMode="discrete" {clock}/>'
    return (
        f'<g visibility="{"visible" if index == 0 else "hidden"}">{moves}'
        f'<image href="{picture.src}" width="{picture.width}" height="{picture.height}"/>'
        f'<text x="8" y="{height + 20}" font-size="14">{escape(caption)}</text></g>'
    )
