"""Which nodes of an accessibility tree may have changed, given what two snapshots of the DOM tell.

An element's name can be made of what is in it, and a label names another element. Attributes that refer to other elements, and those that
are not known here, may change any node: then nothing less than the whole tree is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exact.environments.browser.page.dom_documents import Documents, SnapshotNode

_ALWAYS = frozenset(("input", "select", "textarea", "meter", "progress", "output", "dialog", "video", "audio", "#document"))
"""Elements whose state scripts can change without a trace in the DOM. They are always read again."""
_OWN = frozenset((
    "class", "style", "title", "alt", "placeholder", "value", "href", "src", "srcset", "checked", "width", "height", "aria-label",
    "aria-expanded", "aria-checked", "aria-pressed", "aria-selected", "aria-valuenow", "aria-valuetext", "aria-current",
))  # fmt: skip
"""Attributes that say something about their element and those around it alone, or whose effect is drawn."""
_INHERITED = frozenset(("hidden", "disabled", "aria-hidden", "aria-disabled", "tabindex", "readonly", "required"))
"""Attributes that say something about what is in their element, too."""
_RELATIONS = ("aria-labelledby", "aria-describedby", "aria-details", "aria-owns", "aria-activedescendant", "aria-errormessage")


def nodes_to_read(before: Documents, now: Documents) -> set[int] | None:
    """Return the backend ids of the nodes to read again; None where that may be all of them."""
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
    """Yield what is in any of the roots."""
    inside = set(roots)
    for backend, node in nodes.items() if roots else ():
        if node.above in inside:
            inside.add(backend)
            yield backend


def _labelled(labels: Iterable[SnapshotNode], nodes: dict[int, SnapshotNode]) -> Iterator[int]:
    """Yield what the labels among some nodes are for, by their ids."""
    targets = {value for node in labels if node.name == "label" for name, value in _pairs(node.attributes) if name == "for"}
    for backend, node in nodes.items() if targets else ():
        if any(name == "id" and value in targets for name, value in _pairs(node.attributes)):
            yield backend


def _is_always_read(node: SnapshotNode) -> bool:
    """Return whether a node may have changed without a trace in the snapshot, or is named by another one."""
    return node.name in _ALWAYS or "-" in node.name or any(name in _RELATIONS or name == "contenteditable" for name in node.attributes[::2])
