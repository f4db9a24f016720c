"""A capture of a page: its documents, elements and HTML, read at once.

The beginning of a page that is too large to be read as a whole, in the form of the browser's own answers.

A page can make more text than anybody reads within moments: its tree would keep the browser, this process and every environment beside it
busy for minutes. So the page reports its size before it is read (`exact.size` in size.js), and a script reads the beginning of a large one.

A page as shortened HTML: the content shown, with the ids of its elements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

from exact.config import BrowserConfig
from exact.environments.browser.observe.dom import STYLES, Document, DomNode, read_ahead, read_documents
from exact.environments.browser.observe.implied import accessible_node
from exact.environments.browser.observe.media import MediaStates
from exact.environments.browser.observe.redaction import SHOWN, Redaction, TypedFields
from exact.environments.browser.observe.tree import build_elements, replace_surrogates
from exact.environments.browser.page.cdp import PageTooLarge, no_collection, raw_send, script_call
from exact.environments.browser.page.ids import Ids
from exact.environments.browser.page.projection import Projection
from exact.environments.browser.page.tab import Tab
from exact.errors import EnvironmentFailure
from exact.observation import Box, Element


class Capture(NamedTuple):
    """The state of a page, without its masked parts."""

    documents: list[Document]
    elements: tuple[Element, ...]
    url: str
    title: str
    redaction: Redaction | None
    """Removes the masked parts; None without masks."""


def capture_commands(tab: Tab, config: BrowserConfig) -> list[Awaitable[Any]]:
    """Send the CDP commands for a capture of a tab's page, and return their pending answers.

    Of a page that is too large, only the beginning is read. An answer raises Playwright's Error if a document goes away meanwhile.
    """
    if is_too_large(tab):
        beginning = asyncio.ensure_future(read_beginning(tab, config))
        return [_part(beginning, 0), _part(beginning, 1)]
    view = Box(0, 0, config.width, config.height)
    snapshot = asyncio.ensure_future(_snapshot_of(tab, None if tab.accessible.is_known else view))
    return [snapshot, *tab.accessible.read(snapshot, lambda: read_ahead(snapshot.result(), view))]


async def _snapshot_of(tab: Tab, view: Box | None) -> dict[str, Any]:
    """Return the DOM snapshot of a page. `view`: read it at once, while the browser makes the accessibility tree."""
    snapshot: dict[str, Any] = await raw_send(tab.cdp)("DOMSnapshot.captureSnapshot", {"computedStyles": list(STYLES)})
    if view:
        read_ahead(snapshot, view)
    return snapshot


async def read_frames(tab: Tab, snapshot: Mapping[str, Any]) -> dict[int, Projection]:
    """Return the maps from the viewports of frames to that of the page, by the backend ids of the frames' elements."""
    owners = [
        document["nodes"]["backendNodeId"][index]
        for document in snapshot["documents"]
        for index in document["nodes"]["contentDocumentIndex"]["index"]
    ]
    if not owners:
        return {}
    models = await asyncio.gather(*(_box_model(tab, each) for each in owners))
    maps = ((owner, Projection.of_frame(model)) for owner, model in zip(owners, models, strict=True) if model is not None)
    return {owner: drawn for owner, drawn in maps if drawn.is_flat}


async def _box_model(tab: Tab, node: int) -> dict[str, Any] | None:
    """Return the box model of a node; None if it is not drawn, or gone."""
    from playwright.async_api import Error

    try:
        return dict((await tab.cdp.send("DOM.getBoxModel", {"backendNodeId": node}))["model"])
    except Error as error:
        if tab.is_closing_error(error):
            raise
        return None


async def _part(answers: Awaitable[tuple[Any, Any]], index: int) -> Any:
    return (await answers)[index]


@no_collection()
def build_capture(
    tab: Tab,
    ids: Ids,
    config: BrowserConfig,
    answers: Sequence[Any],
    media: MediaStates | None = None,
    frames: Mapping[int, Projection] | None = None,
    typed: TypedFields | None = None,
) -> Capture:
    """Build the capture from the answers to `capture_commands`. New elements get new ids.

    `media`, `frames`: the results of `read_media` and `read_frames` for the page. `typed`: the fields with secrets. Raises PageTooLarge for
    elements with too much text, of a page that is not cut yet.
    """
    snapshot, *trees = answers
    documents = read_documents(snapshot, Box(0, 0, config.width, config.height), frames)
    nodes = [node for tree in trees for node in tree["nodes"]]
    redaction = Redaction.for_page(documents, nodes, typed) if config.mask or (typed and (typed.backends or typed.paths)) else None
    elements = build_elements(documents, nodes, ids, tab.index, tab.traffic.documents, redaction, media or {})
    if not is_too_large(tab):
        tab.accessible.learn(snapshot, nodes)
    if sum(len(each.name) + len(each.value or "") for each in elements) > MOST_CHARACTERS and not is_too_large(tab):
        raise PageTooLarge
    title = replace_surrogates(documents[0].title)
    return Capture(documents, elements, documents[0].url, redaction.text(title) if redaction else title, redaction)


@no_collection()
def capture_html(page: Capture, ids: Ids, hide: Callable[[str], str]) -> str:
    """Return a captured page as shortened HTML. `hide` removes from a text the parts that an agent may not read."""
    known = {(place.frame, place.backend): element for element in page.elements if (place := ids.location(element.id))}
    return replace_surrogates(page_html(page.documents, known, page.redaction, hide))


MOST_ELEMENTS, MOST_CHARACTERS = 40_000, 4_000_000
"""Elements, and characters of texts, names and fields, of the largest page that is observed as a whole."""
_MOST = {"nodes": 2000, "text": 1000, "texts": 60_000, "controls": 150}
"""Nodes, characters of one text and of all, and controls that can be acted on, which are read of each document."""
_FRAMES = 10
"""Documents of a large page that are read."""
_NAME, _LATE = 1000, 40
"""Maximum characters of a name, and of a name after as many as all texts may have."""
_CHECKED, _SELECTED, _CLICKABLE = 1, 2, 4


def is_too_large(tab: Tab) -> bool:
    """Return whether a tab's page is too large to be read as a whole."""
    elements, characters = tab.size
    return tab.is_unreadable or elements > MOST_ELEMENTS or characters > MOST_CHARACTERS


async def read_beginning(tab: Tab, config: BrowserConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the beginning of a page as answers of `DOMSnapshot.captureSnapshot` and `Accessibility.getFullAXTree`.

    May raise Playwright's Error.
    """
    frames = list(tab.frames)[:_FRAMES]
    main = tab.main_frame
    frames.sort(key=lambda frame: frame != main)
    said = _note(tab)
    found = await asyncio.gather(*(_document(tab, frame, said if frame == main else "") for frame in frames))
    texts = _Strings()
    documents = [_snapshot(each, frame, texts) for frame, each in zip(frames, found, strict=True)]
    snapshot = {"documents": documents, "strings": texts.all}
    nodes, left = list[dict[str, Any]](), _MOST["texts"]
    for document in read_documents(snapshot, Box(0, 0, config.width, config.height)):
        for node in document.nodes:
            made = accessible_node(node, document)
            if made["role"]["value"]:
                made["name"]["value"] = name = made["name"]["value"][: _NAME if left > 0 else _LATE]
                left -= len(name)
                nodes.append({**made, "backendDOMNodeId": node.backend, "ignored": False})
    return snapshot, {"nodes": nodes}


class _Strings:
    """The table of strings of a snapshot."""

    def __init__(self) -> None:
        self.all: list[str] = []
        self._known: dict[str, int] = {}

    def at(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.all)
            self.all.append(text)
        return self._known[text]


async def _document(tab: Tab, frame: str, said: str) -> dict[str, Any]:
    """Return the answer of cut.js for a frame, with the backend ids of its controls as `backends`."""
    try:
        found = dict(await tab.evaluate_in(frame, script_call("observe/cut", _MOST, list(STYLES), said)))
        found["backends"] = await tab.backends(frame, "globalThis.exact?.cut ?? []")
    except EnvironmentFailure:  # a document without a root
        nothing = [-1, 9, "#document", "", [], None, [], "", 0]
        return {"url": "", "title": "", "scroll": (0, 0), "nodes": [nothing], "handles": [], "backends": []}
    return found


def _snapshot(found: Mapping[str, Any], frame: str, texts: _Strings) -> dict[str, Any]:
    at = texts.at
    nodes: list[list[Any]] = found["nodes"]
    backends = dict(zip(found["handles"], found["backends"], strict=False))
    drawn = [index for index, node in enumerate(nodes) if node[5]]

    def flagged(flag: int) -> dict[str, list[int]]:
        return {"index": [index for index, node in enumerate(nodes) if node[8] & flag]}

    valued = [index for index, node in enumerate(nodes) if node[7]]
    return {
        "frameId": at(frame), "documentURL": at(found["url"]), "title": at(found["title"]),
        "scrollOffsetX": found["scroll"][0], "scrollOffsetY": found["scroll"][1],
        "nodes": {
            "parentIndex": [node[0] for node in nodes],
            "nodeType": [node[1] for node in nodes],
            "nodeName": [at(node[2]) for node in nodes],
            "nodeValue": [at(node[3]) for node in nodes],
            "backendNodeId": [backends.get(index, -index - 1) for index in range(len(nodes))],
            "attributes": [[at(each) for each in node[4]] for node in nodes],
            "isClickable": flagged(_CLICKABLE), "inputChecked": flagged(_CHECKED), "optionSelected": flagged(_SELECTED),
            "contentDocumentIndex": {"index": [], "value": []},
            "inputValue": {"index": valued, "value": [at(nodes[index][7]) for index in valued]},
        },
        "layout": {
            "nodeIndex": drawn,
            "styles": [[at(style) for style in nodes[index][6]] for index in drawn],
            "text": [-1] * len(drawn),
            "bounds": [nodes[index][5] for index in drawn],
        },
    }  # fmt: skip


def _note(tab: Tab) -> str:
    """Return the parts cut from a page, and the reason."""
    elements, characters = tab.size
    size = (
        "more than the browser could hand over" if tab.is_unreadable else f"{_about(elements)} elements and {_about(characters)} characters"
    )
    return (
        f"exact shows the beginning of this page only, at most {_MOST['nodes']:,} nodes and {_MOST['text']:,} characters of each text. "
        f"It has {size}; a page is shown whole up to {MOST_ELEMENTS:,} elements and {MOST_CHARACTERS:,} characters."
    )


def _about(count: int) -> str:
    """Return a count, rounded: a page that grows all the time is not another state each time."""
    return f"over {count // 10 ** (len(str(count)) - 1) * 10 ** (len(str(count)) - 1):,}" if count >= 10 else str(count)


_OMITTED = ("script", "style", "noscript", "template", "head", "link", "meta", "base", "#comment")
_OPAQUE = ("svg", "canvas", "video", "audio", "object", "embed")
"""Elements whose content is left out."""
_VOID = ("area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr")
_ATTRIBUTES = (
    *("type", "name", "href", "src", "alt", "title", "placeholder", "role", "for", "colspan", "rowspan", "action", "method", "label"),
    *("multiple", "contenteditable", "draggable", "min", "max"),
)
_INLINE = (
    *("a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "em", "i", "img", "kbd", "label", "mark", "q", "s", "samp", "small"),
    *("span", "strong", "sub", "sup", "time", "u", "var", "wbr"),
)
_MOST_CHARACTERS = 200
"""Maximum characters of an attribute."""
_LINE_ENDS = {ord(end): f"&#{ord(end)};" for end in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
"""Line ends, written out, so that an attribute stays on its line."""
_STATES = ("checked", "disabled", "expanded", "collapsed", "focused", "pressed", "readonly", "required", "selected", "struck")


def page_html(
    documents: Sequence[Document],
    known: Mapping[tuple[str, int], Element],
    redaction: Redaction | None = None,
    hide: Callable[[str], str] = str,
) -> str:
    """Return the page as HTML, one block a line; `exact="12"` is the id of an element.

    `known`: the elements by frame and backend id. `hide` removes from a text the parts that an agent may not read, before it is cut off or
    escaped.
    """
    if not documents:
        return ""
    text = "".join(_Writer(documents, known, redaction, hide).document(0))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


class _Writer:
    """Writes the HTML of a page's documents."""

    def __init__(
        self,
        documents: Sequence[Document],
        known: Mapping[tuple[str, int], Element],
        redaction: Redaction | None,
        hide: Callable[[str], str],
    ) -> None:
        self.documents, self.known, self.redaction, self.hide = documents, known, redaction, hide
        self.children: list[list[list[int]]] = []
        self.drawn: list[list[bool]] = []
        for document in documents:
            below: list[list[int]] = [[] for _ in document.nodes]
            drawn = [node.box is not None or node.name in ("option", "optgroup") for node in document.nodes]
            for node in document.nodes:
                if node.parent >= 0:
                    below[node.parent].append(node.index)
            for node in reversed(document.nodes):
                if node.parent >= 0:
                    drawn[node.parent] = drawn[node.parent] or drawn[node.index]
            self.children.append(below)
            self.drawn.append(drawn)

    def document(self, index: int) -> Iterator[str]:
        """Yield the HTML of one document."""
        for node in self.documents[index].nodes:
            if node.parent < 0:
                yield from self.inside(index, node)

    def inside(self, index: int, node: DomNode) -> Iterator[str]:
        nodes = self.documents[index].nodes
        for at in self.children[index][node.index]:
            yield from self.node(index, nodes[at])

    def node(self, index: int, node: DomNode) -> Iterator[str]:
        if node.kind == 3:
            yield escape(self._hidden(node, node.text)) + (" " if node.text[-1:].isspace() else "")
        elif node.kind in (9, 11):
            yield from self.inside(index, node)
        elif node.kind == 1 and not node.internal and node.name not in _OMITTED and self.drawn[index][node.index]:
            yield from self.element(index, node)

    def element(self, index: int, node: DomNode) -> Iterator[str]:
        line = "" if node.name in _INLINE else "\n"
        yield f"{line}<{node.name}{self._attributes(index, node)}>"
        if node.name in _VOID:
            return
        if node.masked:
            yield SHOWN
        elif 0 <= node.content < len(self.documents):
            yield from self.document(node.content)
        elif node.name not in _OPAQUE:
            yield from self.inside(index, node)
        yield f"</{node.name}>{line}"

    def _attributes(self, index: int, node: DomNode) -> str:
        known = self.known.get((self.documents[index].frame, node.backend))
        found: dict[str, str] = {"exact": known.id} if known else {}
        found |= {key: node.attributes[key] for key in _ATTRIBUTES if key in node.attributes}
        found |= {key: value for key, value in node.attributes.items() if key.startswith("aria-")}
        if known and known.value is not None:
            found["value"] = known.value
        found |= {state: "" for state in _STATES if known and state in known.states}
        shown = ((key, self._shown(node, key, value)[:_MOST_CHARACTERS]) for key, value in found.items())
        return "".join(f' {key}="{escape(value).translate(_LINE_ENDS)}"' if value else f" {key}" for key, value in shown)

    def _shown(self, node: DomNode, key: str, value: str) -> str:
        """Return an attribute's value as it is shown: that of a field keeps its white space, unless more of it is hidden."""
        if key == "exact":
            return value
        hidden = self._hidden(node, value)
        spaced = self.hide(value) if key == "value" else ""
        return spaced if " ".join(spaced.split()) == hidden else hidden

    def _hidden(self, node: DomNode, text: str) -> str:
        text = " ".join(self.hide(text).split())
        return self.redaction.name(node, text) if self.redaction else text
