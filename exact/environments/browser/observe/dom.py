"""The DOM of a page, read from CDP's DOMSnapshot: all nodes in document order, with boxes, attributes and a few styles.

How far a page and the parts of it are scrolled, coarsely, as a part of a state's identity.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from exact.config import BrowserConfig
from exact.environments.browser.page.cdp import no_collection
from exact.environments.browser.page.projection import Projection
from exact.observation import Box

STYLES = (
    *("cursor", "pointer-events", "visibility", "overflow-x", "overflow-y", "fill", "stroke", "background-color", "orphans"),
    *("position", "transform", "filter", "will-change", "opacity", "display", "text-decoration-line", "content-visibility"),
)
"""Computed styles to ask for, in the order of `DomNode.styles`."""
MASKED = "7919"
"""Value of the style `orphans` that marks masked nodes: it is inherited, in shadow roots too, and changes nothing on a screen."""
_READ = "read"
"""Key of a snapshot under which its documents are, if they were read ahead."""
_CLIPS = ("hidden", "auto", "scroll", "clip")


@dataclass(slots=True)
class DomNode:
    """One DOM node. Parents come before children."""

    index: int
    parent: int
    """Index of the parent; -1 for the document."""
    kind: int
    """DOM's nodeType: 1 element, 3 text, 9 document."""
    name: str
    """Tag in lower case, `#text`, `#document`."""
    backend: int
    text: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    clickable: bool = False
    box: Box | None = None
    """Box in the page's viewport, in CSS pixels; None if nothing is drawn."""
    shown: Box | None = None
    """The part of the box that clipping ancestors leave visible; None if there is none."""
    styles: dict[str, str] = field(default_factory=dict)
    masked: bool = False
    """Whether a mask hides it from observations."""
    internal: bool = False
    """Whether it is part of the browser's implementation of a control."""
    value: str = ""
    """Present value of an input or text area."""
    checked: bool = False
    selected: bool = False
    """Whether it is an option that is selected."""
    content: int = -1
    """Index of the document in a frame; -1 for other nodes."""
    end: int = 0
    """Index after that of the last descendant."""


@dataclass
class Document:
    """One document of a page."""

    frame: str
    url: str
    title: str
    nodes: list[DomNode]
    scroll: tuple[float, float] = (0.0, 0.0)
    """CSS pixels that it is scrolled to the right and down."""
    scrollers: list[DomNode] = field(default_factory=list)
    """Elements whose content can be scrolled, in document order."""

    @functools.cached_property
    def lists(self) -> Mapping[str, list[DomNode]]:
        """Lists that fields suggest (`datalist`), by id."""
        return self._by("datalist", "id")

    def labels(self, node: DomNode) -> Iterable[DomNode]:
        """Return the labels of an input in document order: those that name its id, and those around it."""
        found = {each.index: each for each in self._labels_for.get(node.attributes.get("id", ""), ())}
        above = self._label_around[node.index]
        while above >= 0:
            found[above] = self.nodes[above]
            above = self._label_around[above]
        return [found[index] for index in sorted(found)]

    @functools.cached_property
    def _labels_for(self) -> Mapping[str, list[DomNode]]:
        """Labels by the id that they name."""
        return self._by("label", "for")

    @functools.cached_property
    def _label_around(self) -> list[int]:
        """Index of the nearest label around each node; -1 if there is none."""
        found: list[int] = []
        for node in self.nodes:
            above = node.parent
            found.append(-1 if above < 0 else above if self.nodes[above].name == "label" else found[above])
        return found

    def _by(self, name: str, attribute: str) -> Mapping[str, list[DomNode]]:
        """Return the elements of a name by an attribute, which is not empty."""
        found: dict[str, list[DomNode]] = {}
        for node in self.nodes:
            if node.name == name and (value := node.attributes.get(attribute)):
                found.setdefault(value, []).append(node)
        return found


def read_documents(snapshot: dict[str, Any], viewport: Box, frames: Mapping[int, Projection] | None = None) -> list[Document]:
    """Read the documents of a `DOMSnapshot.captureSnapshot` answer, the main frame's first, in coordinates of the viewport.

    `frames`: the maps from the viewports of frames to that of the page, by the backend ids of the frames' elements.
    """
    if not frames and (read := snapshot.pop(_READ, None)):
        return cast("list[Document]", read)
    strings, raw = snapshot["strings"], snapshot["documents"]
    documents = [
        Document(
            _at(strings, each["frameId"]),
            _at(strings, each["documentURL"]),
            _at(strings, each["title"]),
            _nodes(each, strings),
            (each.get("scrollOffsetX", 0.0), each.get("scrollOffsetY", 0.0)),
        )
        for each in raw
    ]
    _Layout(documents, raw, strings, frames or {}).place(0, viewport)
    if MASKED in strings:
        _mask(documents, 0, False)
    return documents


@no_collection()
def read_ahead(snapshot: dict[str, Any], viewport: Box) -> None:
    """Read the document of a page without frames, for the next `read_documents` of the same snapshot."""
    if len(snapshot["documents"]) == 1:
        snapshot[_READ] = read_documents(snapshot, viewport)


def _mask(documents: list[Document], index: int, around: bool) -> None:
    for node in documents[index].nodes:
        above = documents[index].nodes[node.parent].masked if node.parent >= 0 else around
        node.masked = above or node.styles.get("orphans") == MASKED
        if 0 <= node.content < len(documents):
            _mask(documents, node.content, node.masked)


def document_paths(documents: Sequence[Document]) -> dict[tuple[str, int], str]:
    """Return the paths of nodes in their documents, by frame and backend id.

    A path begins at the nearest ancestor with a unique id. It is the same for the same node of a page that is loaded twice, as far as the
    page is built alike.
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
    raw, texts = document["nodes"], [*strings, ""]  # the index of no string is -1
    lower = [each.lower() for each in texts]
    nodes = [
        DomNode(
            i,
            parent,
            kind,
            lower[name],
            backend,
            texts[value],
            {lower[key]: texts[held] for key, held in zip(pairs[::2], pairs[1::2], strict=True)} if pairs else {},
        )
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
    for key in ("inputValue", "textValue"):
        for index, value in _pairs(raw.get(key)):
            nodes[index].value = _at(strings, value)
    for index in raw.get("inputChecked", {}).get("index", ()):
        nodes[index].checked = True
    for index in raw.get("optionSelected", {}).get("index", ()):
        nodes[index].selected = True
    own = {i for i, kind in _pairs(raw.get("shadowRootType")) if _at(strings, kind) == "user-agent"}
    for node in nodes if own else ():
        node.internal = node.index in own or (node.parent >= 0 and nodes[node.parent].internal)
    for node in reversed(nodes):
        end = node.end = node.end or node.index + 1
        if node.parent >= 0 and nodes[node.parent].end < end:
            nodes[node.parent].end = end
    return nodes


def _pairs(rare: dict[str, list[int]] | None) -> list[tuple[int, int]]:
    return list(zip(rare["index"], rare["value"], strict=True)) if rare else []


class _Layout:
    """Computes the places of nodes in the page's viewport."""

    def __init__(self, documents: list[Document], raw: list[dict[str, Any]], strings: list[str], frames: Mapping[int, Projection]) -> None:
        self.documents, self.raw, self.strings, self.frames = documents, raw, strings, frames
        self.styles: dict[tuple[int, ...], dict[str, str]] = {}
        """Style dictionaries by the indices of their values, which many nodes share."""
        self.plain: dict[int, bool] = {}
        """Whether style dictionaries are plain, by their identity."""

    def place(self, index: int, clip: Box, drawn: Projection | None = None) -> None:
        """Fill in the boxes of a document's nodes.

        `clip`: the part of the viewport in which the document is visible. `drawn`: the map from the document's own viewport; None for that
        of the page.
        """
        document, raw = self.documents[index], self.raw[index]
        self._lay(document, raw["layout"], -raw.get("scrollOffsetX", 0.0), -raw.get("scrollOffsetY", 0.0), drawn)
        around = _Clips(clip, clip, clip)
        clips: list[_Clips] = []
        for node in document.nodes:
            above = clips[node.parent] if node.parent >= 0 else around
            if node.box is None or self._is_plain(node.styles):
                node.shown = intersect(node.box, above.flow) if node.box is not None else None
                clips.append(above)
                continue
            own = clip if _is_on_top(node) else above.of(node.styles.get("position", ""))
            node.shown = intersect(node.box, own)
            clips.append(above.inside(node, own))
            if _scrolls(node):
                document.scrollers.append(node)
        for node in document.nodes if len(self.documents) > 1 else ():
            if node.content >= 0 and node.box is not None and node.shown is not None:
                x, y = node.box.x, node.box.y
                self.place(node.content, node.shown, self.frames.get(node.backend) or Projection.moved(x, y))

    def _is_plain(self, styles: dict[str, str]) -> bool:
        """Return whether a node with these styles neither clips nor is positioned, so that its children are visible in its place."""
        found = self.plain.get(id(styles))
        if found is None:
            found = self.plain[id(styles)] = (
                styles.get("position", "static") == "static"
                and not _moves(styles)
                and all(styles.get(key, "visible") == "visible" for key in ("overflow-x", "overflow-y"))
            )
        return found

    def _lay(self, document: Document, layout: dict[str, Any], dx: float, dy: float, drawn: Projection | None) -> None:
        for at, styles, text, (x, y, width, height) in zip(
            layout["nodeIndex"], layout["styles"], layout["text"], layout["bounds"], strict=True
        ):
            node = document.nodes[at]
            if text >= 0 and node.name[:2] == "::":
                node.text += _at(self.strings, text)
            if node.box is None:
                node.box = Box(x + dx, y + dy, width, height)
                if drawn is not None:
                    node.box = drawn.box(node.box)
                node.styles = self.styles.get(values := tuple(styles)) or self._read(values)

    def _read(self, values: tuple[int, ...]) -> dict[str, str]:
        found = self.styles[values] = {name: _at(self.strings, value) for name, value in zip(STYLES, values, strict=False)}
        return found


class _Clips(NamedTuple):
    """The parts of the viewport in which descendants of a node are visible, by how they are positioned; None if they are not."""

    flow: Box | None
    absolute: Box | None
    """For descendants that are positioned against the nearest positioned ancestor."""
    fixed: Box | None
    """For descendants that are positioned against the viewport."""

    def of(self, position: str) -> Box | None:
        """Return the part for a child with that computed `position`."""
        return self.fixed if position == "fixed" else self.absolute if position == "absolute" else self.flow

    def inside(self, node: DomNode, own: Box | None) -> _Clips:
        """Return the parts for the children of a node that is itself visible in `own`."""
        styles, moves = node.styles, _moves(node.styles)
        inner = node.shown if _clips(node) else own
        held = moves or styles.get("position", "static") != "static"
        outer = self.fixed if styles.get("position") == "fixed" else self.absolute
        return _Clips(inner, inner if held else outer, inner if moves else self.fixed)


def _moves(styles: dict[str, str]) -> bool:
    """Return whether an element with these styles contains fixed descendants too."""
    drawn = styles.get("transform", "none") != "none" or styles.get("filter", "none") != "none"
    return drawn or "transform" in styles.get("will-change", "")


def _scrolls(node: DomNode) -> bool:
    own = node.styles.get("overflow-x"), node.styles.get("overflow-y")
    return node.name not in ("html", "body") and ("auto" in own or "scroll" in own)


def _is_on_top(node: DomNode) -> bool:
    """Return whether an element is drawn above the page, which clips it nowhere: a popover, which has a box only while it is open."""
    return "popover" in node.attributes


def _clips(node: DomNode) -> bool:
    return node.name not in ("html", "body") and (node.styles.get("overflow-x") in _CLIPS or node.styles.get("overflow-y") in _CLIPS)


def intersect(a: Box | None, b: Box | None) -> Box | None:
    """Return the intersection of two boxes; None if it is empty."""
    if a is None or b is None or a.y >= b.y + b.height or a.x >= b.x + b.width:
        return None
    if a.x >= b.x and a.y >= b.y and a.x + a.width <= b.x + b.width and a.y + a.height <= b.y + b.height:
        return a if a.width > 0 and a.height > 0 else None
    x, y = max(a.x, b.x), max(a.y, b.y)
    width, height = min(a.x + a.width, b.x + b.width) - x, min(a.y + a.height, b.y + b.height) - y
    return Box(x, y, width, height) if width > 0 and height > 0 else None


ScrollPlace = tuple[int, int, int]
"""Number of a scroller in document order, and how many steps it is scrolled to the right and down."""
_STEPS = 8
"""Steps into which the size of a scroller is divided: a smaller move does not count as scrolling."""
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
