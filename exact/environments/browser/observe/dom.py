"""Reads CDP's DOMSnapshot: every node of a page with box, attributes and a few styles, in document order."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from exact.observation import Box

STYLES = ("cursor", "pointer-events", "visibility", "overflow-x", "overflow-y", "fill", "stroke", "background-color", "orphans")
"""Computed styles asked for, in the order of `DomNode.styles`."""
MASKED = "7919"
"""What `orphans` is where something is masked: it is inherited, in shadow roots too, and changes nothing on a screen."""
_CLIPS = ("hidden", "auto", "scroll", "clip")


@dataclass(slots=True)
class DomNode:
    """One DOM node. Parents come before children."""

    index: int
    parent: int
    """Index; -1 for the document."""
    kind: int
    """DOM's nodeType: 1 element, 3 text, 9 document."""
    name: str
    """Tag in lower case, `#text`, `#document`."""
    backend: int
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    clickable: bool = False
    box: Box | None = None
    """In the page's viewport; None where nothing is drawn."""
    shown: Box | None = None
    """The part of the box that ancestors which clip leave over; None where that is nothing."""
    styles: dict[str, str] = field(default_factory=dict)
    masked: bool = False
    """Whether it is to be kept from everybody."""
    internal: bool = False
    """Whether it belongs to the browser's own make-up of a control."""
    content: int = -1
    """Of a frame: index of the document in it."""
    end: int = 0
    """Index after the last descendant."""


@dataclass(slots=True)
class Document:
    """One document of a page."""

    frame: str
    url: str
    title: str
    nodes: list[DomNode]


def read(snapshot: dict[str, Any], viewport: Box) -> list[Document]:
    """The documents of a `DOMSnapshot.captureSnapshot` answer, the main frame's first, in coordinates of the viewport."""
    strings, raw = snapshot["strings"], snapshot["documents"]
    documents = [
        Document(_at(strings, each["frameId"]), _at(strings, each["documentURL"]), _at(strings, each["title"]), _nodes(each, strings))
        for each in raw
    ]
    _Placer(documents, raw, strings).place(0, viewport, 0.0, 0.0)
    if MASKED in strings:
        _mask(documents, 0, False)
    return documents


def _mask(documents: list[Document], index: int, around: bool) -> None:
    for node in documents[index].nodes:
        above = documents[index].nodes[node.parent].masked if node.parent >= 0 else around
        node.masked = above or node.styles.get("orphans") == MASKED
        if 0 <= node.content < len(documents):
            _mask(documents, node.content, node.masked)


def places(documents: list[Document]) -> dict[tuple[str, int], str]:
    """Where nodes are in their documents, by frame and backend id: a path that begins at the nearest ancestor with an id of its own.

    The same for the same node of a page that is loaded twice, as far as the page is built alike.
    """
    found: dict[tuple[str, int], str] = {}
    for number, document in enumerate(documents):
        paths: list[str] = []
        counts: dict[tuple[int, str], int] = {}
        names = Counter(node.attributes["id"] for node in document.nodes if node.attributes.get("id"))
        for node in document.nodes:
            own = node.attributes.get("id", "")
            counts[node.parent, node.name] = nth = counts.get((node.parent, node.name), 0) + 1
            above = paths[node.parent] if node.parent >= 0 else str(number)
            paths.append(f"{number}#{own}" if own and names[own] == 1 else f"{above}/{node.name}[{nth}]")
            found[document.frame, node.backend] = paths[-1]
    return found


def _at(strings: list[str], index: int) -> str:
    return strings[index] if index >= 0 else ""


def _nodes(document: dict[str, Any], strings: list[str]) -> list[DomNode]:
    raw = document["nodes"]
    nodes = [
        DomNode(i, parent, kind, _at(strings, name).lower(), backend, _at(strings, value), _attributes(pairs, strings))
        for i, (parent, kind, name, value, backend, pairs) in enumerate(
            zip(
                raw["parentIndex"],
                raw["nodeType"],
                raw["nodeName"],
                raw["nodeValue"],
                raw["backendNodeId"],
                raw["attributes"],
                strict=True,
            )
        )
    ]
    for index in raw["isClickable"]["index"]:
        nodes[index].clickable = True
    for index, content in zip(raw["contentDocumentIndex"]["index"], raw["contentDocumentIndex"]["value"], strict=True):
        nodes[index].content = content
    own = {i for i, kind in _pairs(raw.get("shadowRootType")) if _at(strings, kind) == "user-agent"}
    for node in nodes:
        node.internal = node.index in own or (node.parent >= 0 and nodes[node.parent].internal)
        node.end = node.index + 1
    for node in reversed(nodes):
        if node.parent >= 0:
            nodes[node.parent].end = max(nodes[node.parent].end, node.end)
    return nodes


def _pairs(rare: dict[str, list[int]] | None) -> list[tuple[int, int]]:
    return list(zip(rare["index"], rare["value"], strict=True)) if rare else []


def _attributes(pairs: list[int], strings: list[str]) -> dict[str, str]:
    return {_at(strings, pairs[i]).lower(): _at(strings, pairs[i + 1]) for i in range(0, len(pairs), 2)}


class _Placer:
    def __init__(self, documents: list[Document], raw: list[dict[str, Any]], strings: list[str]) -> None:
        self.documents, self.raw, self.strings = documents, raw, strings
        self.styles: dict[tuple[int, ...], dict[str, str]] = {}
        """By the indices of their values: many nodes have the same."""

    def place(self, index: int, clip: Box, dx: float, dy: float) -> None:
        """Fill in boxes. `clip` is the part of the viewport the document can show, (dx, dy) where its own viewport begins."""
        document, raw = self.documents[index], self.raw[index]
        self._lay(document, raw["layout"], dx - raw.get("scrollOffsetX", 0.0), dy - raw.get("scrollOffsetY", 0.0))
        clips: list[Box | None] = []
        for node in document.nodes:
            around = clips[node.parent] if node.parent >= 0 else clip
            node.shown = intersect(node.box, around)
            clips.append(node.shown if _clips(node) else around)
            if node.content >= 0 and node.box is not None and node.shown is not None:
                self.place(node.content, node.shown, node.box.x, node.box.y)

    def _lay(self, document: Document, layout: dict[str, Any], dx: float, dy: float) -> None:
        for at, styles, (x, y, width, height) in zip(layout["nodeIndex"], layout["styles"], layout["bounds"], strict=True):
            node = document.nodes[at]
            if node.box is None:
                node.box = Box(x + dx, y + dy, width, height)
                node.styles = self.styles.get(values := tuple(styles)) or self._read(values)

    def _read(self, values: tuple[int, ...]) -> dict[str, str]:
        found = self.styles[values] = {name: _at(self.strings, value) for name, value in zip(STYLES, values, strict=False)}
        return found


def _clips(node: DomNode) -> bool:
    return node.name not in ("html", "body") and (node.styles.get("overflow-x") in _CLIPS or node.styles.get("overflow-y") in _CLIPS)


def intersect(a: Box | None, b: Box | None) -> Box | None:
    """The common part of two boxes; None if it is empty."""
    if a is None or b is None:
        return None
    if a.x >= b.x and a.y >= b.y and a.x + a.width <= b.x + b.width and a.y + a.height <= b.y + b.height:
        return a if a.width > 0 and a.height > 0 else None
    x, y = max(a.x, b.x), max(a.y, b.y)
    width, height = min(a.x + a.width, b.x + b.width) - x, min(a.y + a.height, b.y + b.height) - y
    return Box(x, y, width, height) if width > 0 and height > 0 else None
