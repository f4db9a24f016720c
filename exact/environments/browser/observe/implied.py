"""What the browser's accessibility tree leaves out although it is drawn, as accessibility nodes made from the DOM.

Three kinds are left out: content under `aria-hidden` or `inert`, which scripts leave behind on pages that are shown and work; radios,
checkboxes and file fields that are not drawn because a label stands for them; and text that style sheets generate. An `aria-hidden` part
that only repeats or decorates what is there, or that a modal dialog covers, stays left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.observe.roles import implied_name, implied_properties, implied_role, implied_value
from exact.environments.browser.observe.words import flat, has_words, is_run, letters

Accessible = dict[str, Any]
"""A node of CDP's accessibility tree."""
_LABELLED = ("radio", "checkbox", "file")
"""Types of inputs that a click on their label changes."""
_UNSHOWN_TEXT = ("script", "style", "noscript", "template", "title", "option", "textarea")
_GENERATED = ("::before", "::after")
_PLACED = frozenset((*_GENERATED, "input"))
_OPERATED = ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch", "slider", "spinbutton", "tab", "menuitem")


def implied_nodes(document: Document, accessible: Mapping[int, Accessible]) -> dict[int, Accessible]:
    """Return accessibility nodes for what `accessible` lacks in a document, by backend id. Places inputs where their label is."""
    found: dict[int, Accessible] = {}
    hidden = [node for node in document.nodes if node.attributes and _is_hidden(node)]
    for node in [each for each in document.nodes if each.name in _PLACED]:
        if node.name in _GENERATED:
            if _says(node, document) and _is_drawn(node, document) and not _is_below(node, hidden):
                found[node.backend] = accessible_node(node, document)
        elif _is_left_to_label(node) and (label := _drawn_label(node, document)) is not None:
            node.box, node.shown, node.styles = label.box, label.shown, label.styles
            if not _is_listed(node, accessible):
                found[node.backend] = accessible_node(node, document)
    covered = any(_is_modal(node, accessible) for node in document.nodes)
    for root in hidden:
        if covered and "inert" not in root.attributes:
            continue
        for node in _revealed(root, hidden, document, accessible):
            found.setdefault(node.backend, accessible_node(node, document, inert="inert" in root.attributes))
    return found


def _is_modal(node: DomNode, accessible: Mapping[int, Accessible]) -> bool:
    """Return whether an element is a modal dialog in view: what is hidden beside it is meant to be."""
    return node.attributes.get("aria-modal") == "true" and node.shown is not None and _is_listed(node, accessible)


def _is_left_to_label(node: DomNode) -> bool:
    """Return whether an input that a click on its label changes is not in view itself."""
    unseen = node.shown is None or node.styles.get("visibility") == "hidden"
    return unseen and node.attributes.get("type", "").lower() in _LABELLED


def _is_hidden(node: DomNode) -> bool:
    """Return whether an element is hidden from the accessibility tree by an attribute. The browser ignores `aria-hidden` of a body."""
    return "inert" in node.attributes or (node.attributes.get("aria-hidden") == "true" and node.name not in ("html", "body"))


def _is_listed(node: DomNode, accessible: Mapping[int, Accessible]) -> bool:
    return not accessible.get(node.backend, {"ignored": True}).get("ignored")


def _is_drawn(node: DomNode, document: Document) -> bool:
    """Return whether a node is painted: it has a box, and nothing around it makes it invisible."""
    if node.box is None or node.styles.get("visibility") == "hidden":
        return False
    while node.parent >= 0:
        if node.styles.get("opacity") == "0":
            return False
        node = document.nodes[node.parent]
    return True


def _is_glyph(node: DomNode) -> bool:
    """Return whether a text is drawn as one sign of an icon font: several letters in a square."""
    return node.box is not None and len(node.text.strip()) > 2 and node.box.width <= 1.2 * node.box.height < 100


def _is_below(node: DomNode, roots: Iterable[DomNode]) -> bool:
    return any(root.index <= node.index < root.end for root in roots)


def _revealed(root: DomNode, hidden: list[DomNode], document: Document, accessible: Mapping[int, Accessible]) -> Iterator[DomNode]:
    """Yield the nodes of a hidden part that are drawn, if any of it is in view. Parts inside that are hidden themselves come apart."""
    inner = [each for each in hidden if root.index < each.index < root.end]
    nodes = [
        node
        for node in document.nodes[root.index : root.end]
        if not (node.internal or _is_listed(node, accessible) or _is_below(node, inner)) and _is_drawn(node, document)
    ]
    texts = [node for node in nodes if _says(node, document)]
    operated = [node for node in nodes if node.kind == 1 and implied_role(node) in _OPERATED]
    if not any(node.shown for node in (*texts, *operated)):
        return
    if not operated and "inert" not in root.attributes and _repeats(root, texts, document):
        return
    said = {node.index for node in texts}
    yield from (node for node in nodes if node.index in said or (node.kind == 1 and implied_role(node)))


def _says(node: DomNode, document: Document) -> bool:
    """Return whether a node is text with words that are drawn as such."""
    if node.kind == 1:
        return node.name in _GENERATED and has_words(node.text) and not _is_glyph(node)
    unshown = node.parent >= 0 and document.nodes[node.parent].name in _UNSHOWN_TEXT
    return node.kind == 3 and not unshown and has_words(node.text) and not _is_glyph(node)


def _repeats(root: DomNode, texts: list[DomNode], document: Document) -> bool:
    """Return whether the text of a hidden part is in the text or the name around it too, as where it is drawn once and read once."""
    said = " ".join(flat(node.text) for node in texts)
    around = document.nodes[root.parent] if root.parent >= 0 else root
    near = [flat(around.attributes.get("aria-label", ""))]
    near += [
        flat(node.text)
        for node in document.nodes[around.index : around.end]
        if node.kind == 3 and node.box is not None and not root.index <= node.index < root.end
    ]
    return any(letters(each) == letters(said) or is_run(said, each) for each in near if each)


def _drawn_label(node: DomNode, document: Document) -> DomNode | None:
    """Return the label of an input, or the part of it that is drawn, if a click on it reaches the input."""
    for label in document.labels(node):
        for part in document.nodes[label.index : label.end]:
            if part.kind == 1 and part.box is not None and part.box.width > 0 and part.box.height > 0 and _is_drawn(part, document):
                return part
    return None


def accessible_node(node: DomNode, document: Document, *, inert: bool = False) -> Accessible:
    """Return the accessibility node that the browser would make of a DOM node."""
    if node.kind == 3 or node.name in _GENERATED:
        return {"role": {"value": "StaticText"}, "name": {"value": flat(node.text)}}
    role = implied_role(node)
    made: Accessible = {"role": {"value": role}, "name": {"value": implied_name(node, document, role)}}
    if (value := implied_value(node, document, role)) is not None:
        made["value"] = {"value": value}
    properties = implied_properties(node, role, inert=inert)
    made["properties"] = [{"name": name, "value": {"value": state}} for name, state in properties.items()]
    return made
