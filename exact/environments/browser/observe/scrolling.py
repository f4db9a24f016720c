"""How far a page and the parts of it are scrolled, coarsely, as a part of a state's identity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exact.config import BrowserConfig
from exact.environments.browser.observe.dom import Document, DomNode
from exact.observation import Box

ScrollPlace = tuple[int, int, int]
"""Number of a scroller in document order, and how many steps it is scrolled to the right and down."""
_STEPS = 8
"""Steps into which the size of a scroller is divided: what moves less counts as not scrolled."""
_LEAST = 24.0
"""Least size of a step in CSS pixels."""


def scroll_places(documents: Sequence[Document], config: BrowserConfig) -> tuple[ScrollPlace, ...]:
    """Return the scrollers that are not at their beginning."""
    found = list[ScrollPlace]()
    sizes = {0: (float(config.width), float(config.height))}
    for index, document in enumerate(documents):
        width, height = sizes.get(index, (0.0, 0.0))
        found.append((len(found), _steps(document.scroll[0], width), _steps(document.scroll[1], height)))
        for node in document.scrollers:
            if (box := node.box) is not None:
                right, down = _offset(node, box, document)
                found.append((len(found), _steps(right, box.width), _steps(down, box.height)))
        if len(documents) > 1:
            sizes |= {
                node.content: (node.box.width, node.box.height) for node in document.nodes if node.content >= 0 and node.box is not None
            }
    return tuple(place for place in found if place[1] or place[2])


def _offset(node: DomNode, box: Box, document: Document) -> tuple[float, float]:
    """Return how far the content of a scroller lies to the left of it and above it."""
    inside = list(_content(node, document))
    if not inside:
        return 0.0, 0.0
    return box.x - min(each.x for each in inside), box.y - min(each.y for each in inside)


def _content(node: DomNode, document: Document) -> Iterator[Box]:
    """Yield the boxes of a scroller's children that move with it."""
    for child in document.nodes[node.index + 1 : node.end]:
        moves = not child.internal and child.styles.get("position") not in ("fixed", "sticky")
        if child.parent == node.index and child.box is not None and moves and child.box.width > 0 and child.box.height > 0:
            yield child.box


def _steps(pixels: float, size: float) -> int:
    return round(pixels / max(_LEAST, size / _STEPS))
