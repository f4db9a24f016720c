"""The accessibility tree of a page: read as a whole, and of a large page only the parts that have changed since.

The browser makes and sends the whole tree at each request, which takes most of the time of an observation. It sends no event about changes
of a tree that was read this way. The snapshot of the DOM, which is taken anyway, shows them: it has text, attributes, fields, sizes and
styles. Nodes that differ are read again, with all that may be named by them. If that is not certain, the whole tree is read.

The nodes of an accessibility tree that may have changed, given two snapshots of the DOM.

An element's name can be made of its content, and a label names another element. Attributes that refer to other elements, and unknown
attributes, may change any node: then only the whole tree is certain.

The part of a snapshot of the DOM that matters to a page's accessibility tree.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from exact.environments.browser.page.cdp import no_collection, raw_send, script_call
from exact.errors import EnvironmentFailure

if TYPE_CHECKING:
    from exact.environments.browser.page.tab import Tab


Accessible = dict[str, Any]
"""A node of CDP's accessibility tree."""
LEAST = 2000
"""Number of nodes of an accessibility tree from which on only changes are read."""
_PART = 20
"""The largest part of a page that is read again node by node: one node in this many."""


class AccessibleTree:
    """Reads the accessibility tree of one tab."""

    def __init__(self, tab: Tab, least: int = LEAST) -> None:
        """Make a reader. `least`: number of nodes of a tree from which on only changes are read."""
        self._tab, self._least = tab, least
        self._snapshot: dict[str, Any] = {}
        self._compared: tuple[dict[str, Any], Documents | None] = ({}, None)
        """The snapshot that was compared last, and its content."""
        self._known: dict[int, Accessible] = {}
        """Nodes that were read, by backend id, with the snapshot of the same moment."""

    @property
    def is_known(self) -> bool:
        """Whether a tree was read that may be completed: then it is read after the snapshot."""
        return bool(self._known)

    def read(
        self, snapshot: asyncio.Future[dict[str, Any]], meanwhile: Callable[[], None] = lambda: None
    ) -> list[Awaitable[dict[str, Any]]]:
        """Return the pending trees of all frames, or the one of a page that is known, given the pending snapshot of its DOM.

        `meanwhile` is called while the browser makes the parts of a page that is known. May raise Playwright's Error.
        """
        if self.is_known:
            return [self._changed(snapshot, meanwhile)]
        return self._whole()

    def learn(self, snapshot: dict[str, Any], nodes: Sequence[Accessible]) -> None:
        """Store the tree just read, for the next time."""
        self._snapshot, self._known = {}, {}
        if self._compared[0] is not snapshot:
            self._compared = ({}, None)
        if len(nodes) >= self._least:
            self._snapshot, self._known = snapshot, {each["backendDOMNodeId"]: each for each in nodes if "backendDOMNodeId" in each}

    def forget(self) -> None:
        """Read the whole tree the next time."""
        self.learn({}, ())

    def _whole(self) -> list[Awaitable[dict[str, Any]]]:
        send = raw_send(self._tab.cdp)
        return [send("Accessibility.getFullAXTree", {"frameId": frame}) for frame in list(self._tab.frames)]

    async def _changed(self, snapshot: asyncio.Future[dict[str, Any]], meanwhile: Callable[[], None]) -> dict[str, Any]:
        focused = asyncio.gather(*(self._focused(frame) for frame in list(self._tab.frames)))
        found, focus = await asyncio.gather(snapshot, focused)
        with no_collection():
            before, now = self._compared[1] or documents(self._snapshot), documents(found)
            wanted = nodes_to_read(before, now)
        self._compared = (found, now)
        if wanted is not None:
            held = (each["backendDOMNodeId"] for each in self._known.values() if _has_focus(each))
            wanted |= {*held, *(backend for each in focus for backend in each)} & now.nodes.keys()
        read = await self._read(wanted, meanwhile) if wanted is not None and len(wanted) <= max(50, len(now.nodes) // _PART) else None
        if read is None:
            return {"nodes": [node for tree in await asyncio.gather(*self._whole()) for node in tree["nodes"]]}
        return {"nodes": [node for backend in now.nodes if (node := read.get(backend) or self._known.get(backend))]}

    async def _read(self, wanted: set[int], meanwhile: Callable[[], None]) -> dict[int, Accessible] | None:
        """Return nodes by their backend ids; None if one has gone since the snapshot, as on a page that changes all the time."""
        from playwright.async_api import Error

        send = raw_send(self._tab.cdp)
        asked = [send("Accessibility.getPartialAXTree", {"backendNodeId": each, "fetchRelatives": False}) for each in wanted]
        reading = asyncio.gather(*asked, return_exceptions=True)  # all of them: the page may fail more than one
        await asyncio.sleep(0)  # the questions leave
        meanwhile()
        answers = await reading
        failed = [each for each in answers if isinstance(each, BaseException)]
        if other := [each for each in failed if not isinstance(each, Error)]:
            raise other[0]
        told = (each for each in answers if not isinstance(each, BaseException))
        return None if failed else {node["backendDOMNodeId"]: node for answer in told for node in answer["nodes"]}

    async def _focused(self, frame: str) -> list[int]:
        try:
            return await self._tab.backends(frame, script_call("page/active_element"))
        except EnvironmentFailure:  # a document without a root
            return []


def _has_focus(node: Accessible) -> bool:
    return any(each["name"] == "focused" for each in node.get("properties", ()))


_ALWAYS = frozenset(("input", "select", "textarea", "meter", "progress", "output", "dialog", "video", "audio", "#document"))
"""Elements whose state scripts can change without a trace in the DOM. They are always read again."""
_OWN = frozenset((
    "class", "style", "title", "alt", "placeholder", "value", "href", "src", "srcset", "checked", "width", "height", "aria-label",
    "aria-expanded", "aria-checked", "aria-pressed", "aria-selected", "aria-valuenow", "aria-valuetext", "aria-current",
))  # fmt: skip
"""Attributes that describe their element and those around it alone, or whose effect is drawn."""
_INHERITED = frozenset(("hidden", "disabled", "aria-hidden", "aria-disabled", "tabindex", "readonly", "required"))
"""Attributes that also describe the content of their element."""
_NAMING = frozenset((
    "aria-labelledby", "aria-describedby", "aria-details", "aria-owns", "aria-activedescendant", "aria-errormessage", "contenteditable",
))  # fmt: skip


def nodes_to_read(before: Documents, now: Documents) -> set[int] | None:
    """Return the backend ids of the nodes to read again; None if that may be all of them."""
    if before.frames != now.frames or now.closed or not _same_order(before.nodes, now.nodes):
        return None
    touched, below = set[int](), set[int]()
    for backend, node in now.nodes.items():
        old = before.nodes.get(backend)
        if old == node:
            continue
        touched.add(backend)
        if old is not None and old.attributes != node.attributes:
            names = _changed_names(old.attributes, node.attributes)
            if not all(name in _OWN or name in _INHERITED or name.startswith("data-") for name in names):
                return None
            if names & _INHERITED:
                below.add(backend)
        elif old is not None and old.name != node.name:
            return None
    touched |= {above for backend in before.nodes.keys() - now.nodes.keys() if (above := before.nodes[backend].above) in now.nodes}
    around = {above for backend in touched for above in _above(backend, now.nodes)}
    labels = _labelled((now.nodes[each] for each in touched | around), now.nodes)
    return (
        touched | around | set(labels) | set(_below(below, now.nodes)) | {each for each, node in now.nodes.items() if _is_always_read(node)}
    )


def _same_order(before: dict[int, SnapshotNode], now: dict[int, SnapshotNode]) -> bool:
    """Return whether the nodes that are in both are in one order."""
    return [each for each in before if each in now] == [each for each in now if each in before]


def _changed_names(old: tuple[str, ...], new: tuple[str, ...]) -> set[str]:
    """Return the names of the attributes that differ."""
    return {name for name, _ in set(_pairs(old)) ^ set(_pairs(new))}


def _pairs(attributes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return zip(attributes[::2], attributes[1::2], strict=True)


def _above(backend: int, nodes: dict[int, SnapshotNode]) -> Iterator[int]:
    """Yield the ancestors of a node: their names may be made of its text."""
    while (backend := nodes[backend].above) in nodes:
        yield backend


def _below(roots: set[int], nodes: dict[int, SnapshotNode]) -> Iterator[int]:
    """Yield the nodes in any of the roots."""
    inside = set(roots)
    for backend, node in nodes.items() if roots else ():
        if node.above in inside:
            inside.add(backend)
            yield backend


def _labelled(labels: Iterable[SnapshotNode], nodes: dict[int, SnapshotNode]) -> Iterator[int]:
    """Yield the targets of the labels among some nodes, by their ids."""
    targets = {value for node in labels if node.name == "label" for name, value in _pairs(node.attributes) if name == "for"}
    for backend, node in nodes.items() if targets else ():
        if any(name == "id" and value in targets for name, value in _pairs(node.attributes)):
            yield backend


def _is_always_read(node: SnapshotNode) -> bool:
    """Return whether a node may have changed without a trace in the snapshot, or is named by another one."""
    names = node.attributes[::2]
    return node.name in _ALWAYS or "-" in node.name or (bool(names) and not _NAMING.isdisjoint(names))


class SnapshotNode(NamedTuple):
    """The part of a snapshot's node that matters to the accessibility tree."""

    above: int
    """Backend id of the parent; 0 without one."""
    name: str
    attributes: tuple[str, ...]
    """Names and values by turns."""
    rest: tuple[object, ...]


class Documents(NamedTuple):
    """The documents of a snapshot."""

    frames: tuple[tuple[str, str], ...]
    """Id and address of each."""
    nodes: dict[int, SnapshotNode]
    """By backend id, in document order; without the parts that implement controls."""
    closed: bool
    """Whether there are closed shadow roots, in which the focus is not seen."""


def documents(snapshot: dict[str, Any]) -> Documents:
    """Return the documents of an answer of CDP's DOMSnapshot.captureSnapshot."""
    strings = snapshot["strings"]
    frames, nodes, closed = list[tuple[str, str]](), dict[int, SnapshotNode](), False
    for document in snapshot["documents"]:
        frames.append((strings[document["frameId"]], _at(strings, document["documentURL"])))
        closed = _add(document, strings, nodes) or closed
    return Documents(tuple(frames), nodes, closed)


def _add(document: dict[str, Any], strings: list[str], nodes: dict[int, SnapshotNode]) -> bool:
    """Add the nodes of a document. Return whether there are closed shadow roots."""
    raw, layout = document["nodes"], document["layout"]
    drawn = dict[int, tuple[object, ...]]()
    looks = dict[tuple[int, ...], tuple[str, ...]]()
    for at, styles, text, (_, _, width, height) in zip(
        layout["nodeIndex"], layout["styles"], layout["text"], layout["bounds"], strict=True
    ):
        look = looks.get(key := tuple(styles)) or looks.setdefault(key, tuple(_at(strings, each) for each in styles))
        drawn[at] = (*drawn.get(at, ()), look, _at(strings, text), width, height)
    state = {name: dict(zip(found["index"], found.get("value", found["index"]), strict=True)) for name, found in _rare(raw)}
    fields, shadows = (state.get("inputValue", {}), state.get("textValue", {})), state.get("shadowRootType", {})
    checked, selected = state.get("inputChecked", {}), state.get("optionSelected", {})
    texts, lower = [*strings, ""], [each.lower() for each in (*strings, "")]  # the index of no string is -1
    backends, parents, internal, closed = raw["backendNodeId"], raw["parentIndex"], set[int](), False
    for index, (backend, parent, kind, name, value, pairs) in enumerate(
        zip(backends, parents, raw["nodeType"], raw["nodeName"], raw["nodeValue"], raw["attributes"], strict=True)
    ):
        shadow = strings[shadows[index]] if index in shadows else ""
        closed = closed or shadow == "closed"
        if shadow == "user-agent" or parent in internal:
            internal.add(index)
        elif kind in (1, 3, 9, 11):
            said = [texts[each[index]] if index in each else "" for each in fields]
            nodes[backend] = SnapshotNode(
                backends[parent] if parent >= 0 else 0,
                lower[name],
                tuple([texts[each] for each in pairs]) if pairs else (),
                (kind, texts[value], *said, index in checked, index in selected, drawn.get(index)),
            )
    return closed


def _rare(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, list[int]]]]:
    names = ("inputValue", "textValue", "inputChecked", "optionSelected", "shadowRootType")
    return ((name, raw[name]) for name in names if name in raw)


def _at(strings: list[str], index: int) -> str:
    return strings[index] if index >= 0 else ""
