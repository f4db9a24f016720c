"""Boxes of elements that show a secret, and screenshots in which they are covered."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

from exact.environments.browser.observe.dom import Document, DomNode, intersect
from exact.observation import Box
from exact.secrecy import Scrubber

_AROUND = 3.0
"""CSS pixels around a box that are covered with it: a page may move a little while it is observed."""
_UNDRAWN = ("script", "style", "template", "noscript", "head", "title")
_BUTTONS = ("submit", "button", "reset")


def secret_boxes(documents: Sequence[Document], scrubber: Scrubber, viewport: Box) -> list[Box]:
    """Return the visible boxes of passwords that are filled in, and of texts and values in which a secret stands or is split."""
    drawn = [(document, *each) for document in documents for each in _texts(document)]
    texts = [text for _, _, text in drawn]
    shown = scrubber.texts(texts)
    secret = [(document, node) for (document, node, text), done in zip(drawn, shown, strict=True) if text != done]
    secret += [(document, node) for document in documents for node in document.nodes if _is_filled_password(node)]
    return [box for document, node in secret if (box := _box(document, node, viewport))]


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


def _is_filled_password(node: DomNode) -> bool:
    return node.name == "input" and node.attributes.get("type", "").lower() == "password" and bool(node.value)


def _box(document: Document, node: DomNode, viewport: Box) -> Box | None:
    """Return the visible box of a node, or of the nearest element around it that has one, such as a drop-down of an option."""
    while node.box is None and node.parent >= 0:
        node = document.nodes[node.parent]
    return intersect(node.box, viewport)
