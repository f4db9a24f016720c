"""Boxes of elements that show a secret, and screenshots in which they are covered."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterable, Iterator, Sequence

from exact.config import BrowserConfig
from exact.environments.browser.observe.capture import is_too_large
from exact.environments.browser.observe.dom import Document, DomNode, intersect
from exact.environments.browser.observe.redaction import is_password
from exact.environments.browser.page.cdp import raw_send
from exact.environments.browser.page.tab import Tab
from exact.observation import Box
from exact.secrecy.scrubber import Scrubber

_AROUND = 3.0
"""CSS pixels around a box that are covered with it: a page may move a little while it is observed."""
_TRIES = 3
"""Screenshots that are taken until no secret moves."""
_UNDRAWN = ("script", "style", "template", "noscript", "head", "title")
_BUTTONS = ("submit", "button", "reset")


def secret_nodes(documents: Sequence[Document], scrubber: Scrubber) -> list[tuple[Document, DomNode]]:
    """Return the passwords that are filled in, and the texts and values in which a secret stands or is split."""
    drawn = [(document, *each) for document in documents for each in _texts(document)]
    texts = [text for _, _, text in drawn]
    shown = scrubber.texts(texts)
    secret = [(document, node) for (document, node, text), done in zip(drawn, shown, strict=True) if text != done]
    secret += [(document, letter) for document, node in secret if (letter := _first_letter(document, node))]
    return secret + [(document, node) for document in documents for node in document.nodes if is_password(node) and node.value]


async def cover(
    tab: Tab, screenshot: bytes, nodes: Sequence[tuple[Document, DomNode]], config: BrowserConfig, *, typed: bool
) -> tuple[bytes, list[Box]]:
    """Return a screenshot in which nodes are covered, and their boxes.

    The boxes are where the browser draws the nodes before and after the screenshot. If they move meanwhile, another one is taken; if
    they always do, all of it is covered. So it is if a page is too large to be searched, and a secret was
    `typed` in this episode.
    """
    view = Box(0, 0, config.width, config.height)
    if is_too_large(tab) and typed:
        return await asyncio.to_thread(covered, screenshot, [view], config.width), [view]
    if not nodes:
        return screenshot, []
    before, after = [_box(*each, view) for each in nodes], await _places(tab, nodes, view)
    for _ in range(_TRIES):
        if all(map(_is_near, before, after)):
            boxes = [box for box in (*before, *after) if box is not None]
            break
        before = after
        screenshot = await tab.screenshot()
        after = await _places(tab, nodes, view)
    else:
        boxes = [view]
    return (await asyncio.to_thread(covered, screenshot, boxes, config.width) if boxes else screenshot), boxes


async def _places(tab: Tab, nodes: Sequence[tuple[Document, DomNode]], view: Box) -> list[Box | None]:
    """Return the boxes in which the browser draws nodes now, as far as they are in view, with the transforms of all frames around them."""
    from playwright.async_api import Error

    send = raw_send(tab.cdp)

    async def ask(document: Document, node: DomNode) -> Box | None:
        drawn = _drawn(document, node)
        if drawn.backend < 0:  # of the beginning of a large page, which is read by a script
            return intersect(drawn.box, view)
        try:
            quads = (await send("DOM.getContentQuads", {"backendNodeId": drawn.backend}))["quads"]
        except Error:  # it is not drawn
            return None
        return intersect(_around(quads), view)

    return await asyncio.gather(*(ask(*each) for each in nodes))


def _around(quads: Sequence[Sequence[float]]) -> Box | None:
    """Return the box around quads, each a list of the coordinates of four corners; None if there are none."""
    if not quads:
        return None
    xs, ys = ([each for quad in quads for each in quad[first::2]] for first in (0, 1))
    return Box(min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys))


def _is_near(one: Box | None, other: Box | None) -> bool:
    """Return whether two boxes differ by less than is covered around them."""
    if one is None or other is None:
        return one is other
    sides = ((box.x, box.y, box.x + box.width, box.y + box.height) for box in (one, other))
    return all(abs(first - second) <= _AROUND for first, second in zip(*sides, strict=True))


def covered(screenshot: bytes, boxes: Iterable[Box], width: int) -> bytes:
    """Return a PNG with boxes, in CSS pixels, covered by grey. `width`: that of the viewport, in CSS pixels."""
    from PIL import Image, ImageDraw

    with Image.open(io.BytesIO(screenshot)) as image:
        picture = image.convert("RGB")
    scale = picture.width / width
    draw = ImageDraw.Draw(picture)
    for box in boxes:
        left, top = (box.x - _AROUND) * scale, (box.y - _AROUND) * scale
        draw.rectangle((left, top, (box.x + box.width + _AROUND) * scale, (box.y + box.height + _AROUND) * scale), fill=(128, 128, 128))
    file = io.BytesIO()
    picture.save(file, "PNG", compress_level=1)
    return file.getvalue()


def _texts(document: Document) -> Iterator[tuple[DomNode, str]]:
    """Yield the nodes that may draw a text, with it, in document order."""
    for node in document.nodes:
        if node.kind == 3 or node.name.startswith("::"):
            around = document.nodes[node.parent].name if node.parent >= 0 else ""
            if node.text and around not in _UNDRAWN:
                yield node, node.text
        elif node.name in ("input", "textarea"):
            kind = node.attributes.get("type", "").lower()
            written = node.value or node.attributes.get("value" if kind in _BUTTONS else "placeholder", "")
            if written:
                yield node, written
        elif node.name in ("img", "option", "optgroup", "object") and (written := _label(node)):
            yield node, written


def _label(node: DomNode) -> str:
    return node.attributes.get("label") or node.attributes.get("alt") or ""


def _first_letter(document: Document, node: DomNode) -> DomNode | None:
    """Return the pseudo-element in which the first letter of a text is drawn, if it is drawn apart."""
    children = document.nodes[node.parent : node.index] if node.parent >= 0 else ()
    return next((each for each in children if each.name == "::first-letter"), None)


def _drawn(document: Document, node: DomNode) -> DomNode:
    """Return a node, or the nearest element around it that has a box, such as a drop-down of an option."""
    while node.box is None and node.parent >= 0:
        node = document.nodes[node.parent]
    return node


def _box(document: Document, node: DomNode, view: Box) -> Box | None:
    """Return the visible box of a node as the capture has it."""
    return intersect(_drawn(document, node).box, view)
