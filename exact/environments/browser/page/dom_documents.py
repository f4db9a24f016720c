"""What a snapshot of the DOM tells of a page that matters to its accessibility tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple


class SnapshotNode(NamedTuple):
    """What a snapshot tells of a node that matters to the accessibility tree."""

    above: int
    """Backend id of the parent; 0 where there is none."""
    name: str
    attributes: tuple[str, ...]
    """Names and values by turns."""
    rest: tuple[object, ...]


class Documents(NamedTuple):
    """The documents of a snapshot."""

    frames: tuple[tuple[str, str], ...]
    """Id and address of each."""
    nodes: dict[int, SnapshotNode]
    """By backend id, in document order; without what implements controls."""
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
    backends, parents, internal, closed = raw["backendNodeId"], raw["parentIndex"], set[int](), False
    for index, (backend, parent, kind, name, value, pairs) in enumerate(
        zip(backends, parents, raw["nodeType"], raw["nodeName"], raw["nodeValue"], raw["attributes"], strict=True)
    ):
        shadow = strings[shadows[index]] if index in shadows else ""
        closed = closed or shadow == "closed"
        if shadow == "user-agent" or parent in internal:
            internal.add(index)
        elif kind in (1, 3, 9, 11):
            said = tuple(_at(strings, each[index]) if index in each else "" for each in fields)
            flags = (index in state.get("inputChecked", {}), index in state.get("optionSelected", {}))
            nodes[backend] = SnapshotNode(
                backends[parent] if parent >= 0 else 0,
                _at(strings, name).lower(),
                tuple(strings[each] for each in pairs),
                (kind, _at(strings, value), *said, *flags, drawn.get(index)),
            )
    return closed


def _rare(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, list[int]]]]:
    names = ("inputValue", "textValue", "inputChecked", "optionSelected", "shadowRootType")
    return ((name, raw[name]) for name in names if name in raw)


def _at(strings: list[str], index: int) -> str:
    return strings[index] if index >= 0 else ""
