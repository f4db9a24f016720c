"""Drawn content that the browser's accessibility tree leaves out, as accessibility nodes made from the DOM.

Four kinds are left out: content under `aria-hidden` or `inert`, which scripts leave behind on pages that are shown and work; radios,
checkboxes and file fields that are not drawn because a label stands for them; text that style sheets generate; and content that is not
rendered until it is near the view (`content-visibility: auto`). An `aria-hidden` part that only repeats or decorates other content, or that
a modal dialog covers, stays left out.

Roles, names, values and states that HTML gives to elements, for elements that the browser's accessibility tree leaves out.

Comparison of texts of a page: which words repeat which.

Words for colours, which distinguish elements without text in an observation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from exact.environments.browser.observe.dom import Document, DomNode

Accessible = dict[str, Any]
"""A node of CDP's accessibility tree."""
_LABELLED = ("radio", "checkbox", "file")
"""Types of inputs that a click on their label changes."""
_UNSHOWN_TEXT = ("script", "style", "noscript", "template", "title", "option", "textarea")
_GENERATED = ("::before", "::after")
_PLACED = frozenset((*_GENERATED, "input"))
_OPERATED = ("button", "link", "textbox", "searchbox", "combobox", "checkbox", "radio", "switch", "slider", "spinbutton", "tab", "menuitem")


def implied_nodes(document: Document, accessible: Mapping[int, Accessible]) -> dict[int, Accessible]:
    """Return accessibility nodes that `accessible` lacks in a document, by backend id. Inputs are placed at their labels."""
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
    covered = bool(hidden) and any(_is_modal(node, accessible) for node in document.nodes)
    for root in hidden:
        if covered and "inert" not in root.attributes:
            continue
        for node in _revealed(root, hidden, document, accessible):
            found.setdefault(node.backend, accessible_node(node, document, inert="inert" in root.attributes))
    for node in _unrendered(hidden, document, accessible):
        found.setdefault(node.backend, accessible_node(node, document))
    return found


def _unrendered(hidden: list[DomNode], document: Document, accessible: Mapping[int, Accessible]) -> Iterator[DomNode]:
    """Yield the nodes with a meaning of parts that the browser does not render until they are near the view."""
    for root in document.nodes:
        if root.styles.get("content-visibility") != "auto":
            continue
        inside = document.nodes[root.index + 1 : root.end]
        if any(_is_listed(node, accessible) for node in inside):
            continue
        apart = [*hidden, *(each for each in inside if each.styles.get("content-visibility") == "hidden")]
        for node in inside:
            means = _says(node, document) or (node.kind == 1 and implied_role(node))
            if means and not node.internal and _is_drawn(node, document) and not _is_below(node, apart):
                yield node


def _is_modal(node: DomNode, accessible: Mapping[int, Accessible]) -> bool:
    """Return whether an element is a modal dialog in view: hidden content beside it is meant to be hidden."""
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
    """Return whether the text of a hidden part is in the text or the name around it too, as when it is drawn once and read once."""
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


_TAGS = {
    "button": "button", "textarea": "textbox", "img": "image", "li": "listitem", "ul": "list", "ol": "list", "table": "table",
    "tr": "row", "td": "cell", "th": "columnheader", "nav": "navigation", "main": "main", "dialog": "dialog", "fieldset": "group",
    "summary": "DisclosureTriangle", "canvas": "Canvas", "video": "Video", "audio": "Audio", "progress": "progressbar", "meter": "meter",
    "option": "option", **{f"h{level}": "heading" for level in range(1, 7)},
}  # fmt: skip
_INPUTS = {
    "checkbox": "checkbox", "radio": "radio", "range": "slider", "number": "spinbutton", "search": "searchbox", "color": "ColorWell",
    "date": "Date", "datetime-local": "DateTime", "time": "InputTime", "hidden": "",
    **dict.fromkeys(("submit", "button", "reset", "image", "file"), "button"),
}  # fmt: skip
_ARIA = {"img": "image", "presentation": "", "none": ""}
"""Names that the browser's accessibility tree gives to ARIA roles, if they differ."""
_BY_CONTENT = ("button", "link", "heading", "option", "tab", "menuitem", "checkbox", "radio", "switch", "treeitem", "DisclosureTriangle")
"""Roles whose name is their content."""
_UNSHOWN_ROLES = ("script", "style", "noscript", "template", "title")
_STATES = ("checked", "disabled", "expanded", "pressed", "readonly", "required", "selected")


def implied_role(node: DomNode) -> str:
    """Return the role of an element by its attributes and tag; empty for a wrapper."""
    given = node.attributes.get("role", "").split()
    if given:
        return _ARIA.get(given[0], given[0])
    if node.name == "input":
        return _INPUTS.get(node.attributes.get("type", "").lower(), "textbox")
    if node.name == "a":
        return "link" if "href" in node.attributes else ""
    if node.name == "select":
        return "listbox" if "multiple" in node.attributes else "combobox"
    if node.name == "img" and node.attributes.get("alt") == "":
        return ""
    return _TAGS.get(node.name, "")


def implied_name(node: DomNode, document: Document, role: str) -> str:
    """Return the name of an element: by ARIA, label, attribute or content; for an input without words, by a distinguishing property."""
    own, ids = node.attributes, node.attributes.get("aria-labelledby", "").split()
    if ids and (named := " ".join(drawn_words(each, document) for each in document.nodes if each.attributes.get("id") in ids)):
        return named
    if said := flat(own.get("aria-label", "")):
        return said
    if node.name in ("input", "select", "textarea"):
        if own.get("type") in ("submit", "button", "reset") and own.get("value"):
            return flat(own["value"])
        for label in document.labels(node):
            if said := drawn_words(label, document) or _pictured(label, document):
                return said
    said = next((flat(own[key]) for key in ("alt", "title", "placeholder") if own.get(key)), "")
    if not said and role in _BY_CONTENT and node.name != "input":
        said = drawn_words(node, document)
    if not said and role in ("radio", "checkbox"):
        value = flat(own.get("value", ""))
        said = value if has_words(value) and value != "on" else colour_word(node.styles.get("background-color", ""))
    return said


def implied_value(node: DomNode, document: Document, role: str) -> str | None:
    """Return the value of a field; None if the element is not a field, or is empty."""
    if node.name == "select":
        inside = document.nodes[node.index : node.end]
        return next((drawn_words(each, document, boxes=False) for each in inside if each.selected), None)
    return (
        node.value or None
        if role in ("textbox", "searchbox", "spinbutton", "slider", "ColorWell", "Date", "DateTime", "InputTime")
        else None
    )


def implied_properties(node: DomNode, role: str, *, inert: bool = False) -> dict[str, str]:
    """Return the states of an element as properties of an accessibility node. `inert`: it takes no input."""
    found = {state: node.attributes[f"aria-{state}"] for state in _STATES if f"aria-{state}" in node.attributes}
    found |= {state: "true" for state in ("disabled", "readonly", "required") if state in node.attributes}
    if node.checked:
        found["checked"] = "true"
    if node.selected:
        found["selected"] = "true"
    if inert and role in (*_BY_CONTENT, "textbox", "searchbox", "combobox", "spinbutton", "slider") and role != "heading":
        found["disabled"] = "true"
    return found


_MOST_SUGGESTED = 100
"""Options of lists that fields suggest, of which elements are made. `select` finds the others too."""


def suggestions(node: DomNode, document: Document, taken: set[int]) -> Iterator[tuple[DomNode, str]]:
    """Yield the options that a field suggests (`datalist`) with their names, which the browser's accessibility tree leaves out.

    `taken`: the backend ids of those that were yielded for other fields, which are left out. New ones are added to it.
    """
    named = node.attributes.get("list", "") if node.name == "input" else ""
    lists = document.lists.get(named, ()) if named else ()
    for option in (inner for each in lists for inner in document.nodes[each.index : each.end] if inner.name == "option"):
        value, label = (flat(option.attributes.get(key, "")) for key in ("value", "label"))
        label = label or flat(" ".join(each.text for each in document.nodes[option.index : option.end] if each.kind == 3))
        name = f"{value} ({label})" if value and label and value != label else value or label
        if name and option.backend not in taken and len(taken) < _MOST_SUGGESTED:
            taken.add(option.backend)
            yield option, name


def drawn_words(node: DomNode, document: Document, *, boxes: bool = True) -> str:
    """Return the text in an element. `boxes`: only drawn text, style sheets' text included."""
    inside = document.nodes[node.index + 1 : node.end]
    said = (
        each.text
        for each in inside
        if (each.kind == 3 and document.nodes[each.parent].name not in _UNSHOWN_ROLES and (each.box is not None or not boxes))
        or each.name in ("::before", "::after")
    )
    return flat(" ".join(text for text in said if has_words(text)))


def _pictured(label: DomNode, document: Document) -> str:
    """Return the meaning of a label without text: by its own attributes, or by those of a picture in it."""
    for each in document.nodes[label.index : label.end]:
        for key in ("aria-label", "title", "alt"):
            if each.name != "input" and each.attributes.get(key):
                return flat(each.attributes[key])
    return ""


_EDGES = ".,:;!?()[]\"'"


def flat(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


def has_words(text: str) -> bool:
    """Return whether a text holds a letter or a digit, so that it is not a mere sign."""
    return any(each.isalnum() for each in text)


def letters(text: str) -> str:
    """Return the letters and digits of a text."""
    return "".join(each for each in text if each.isalnum())


def is_run(text: str, of: str) -> bool:
    """Return whether the words of a text follow one another in another text.

    >>> is_run("400", "Account 4400"), is_run("read more", "Please read more.")
    (False, True)
    """
    return _find(_words(text), _words(of)) >= 0


def repeated(texts: Sequence[str], name: str, value: str = "") -> list[bool]:
    """Return which of the texts in an element repeat its name or value, each word of which is repeated once.

    Numbers alone repeat a name only as a whole: in "Account 400", a text "400" may be another number.

    >>> repeated(["Send", "now"], "Send now"), repeated(["Total", "400"], "Total of 400"), repeated(["1"], "Item 10")
    ([True, True], [True, False], [False])
    """
    if texts == [name]:
        return [True]
    if texts and letters("".join(texts)) == letters(name) and has_words(name):
        return [True] * len(texts)
    named, held, found = _words(name), _words(value), list[bool]()
    for text in texts:
        words = _words(text)
        counts = any(each.isalpha() for each in text) or words == _words(name)
        found.append(text in (name, value) or (counts and _take(words, named)) or _take(words, held))
    return found


def _take(words: list[str], of: list[str]) -> bool:
    """Remove the words from the others, if they follow one another there. Return whether they do."""
    at = _find(words, of)
    if at >= 0:
        of[at : at + len(words)] = [""]
    return at >= 0


def _find(words: list[str], of: list[str]) -> int:
    """Return the index at which the words follow one another in others; -1 if there is none."""
    if not words:
        return -1
    return next((i for i in range(len(of) - len(words) + 1) if of[i : i + len(words)] == words), -1)


def _words(text: str) -> list[str]:
    return [each.strip(_EDGES) or each for each in text.split()]


_WORDS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "grey": (128, 128, 128),
    "red": (255, 0, 0),
    "green": (0, 128, 0),
    "lime": (0, 255, 0),
    "blue": (0, 0, 255),
    "yellow": (255, 255, 0),
    "aqua": (0, 255, 255),
    "magenta": (255, 0, 255),
    "orange": (255, 165, 0),
    "purple": (128, 0, 128),
    "pink": (255, 192, 203),
    "brown": (165, 42, 42),
    "olive": (128, 128, 0),
    "navy": (0, 0, 128),
    "teal": (0, 128, 128),
}
_RGB = re.compile(r"rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)")


def colour_word(css: str) -> str:
    """Return the nearest colour word to a computed CSS colour; empty if it is not a colour or is transparent.

    >>> colour_word("rgb(250, 5, 5)")
    'red'
    """
    match = _RGB.match(css)
    if not match or (match[4] is not None and float(match[4]) == 0):
        return ""
    given = tuple(int(match[i]) for i in (1, 2, 3))
    return min(_WORDS, key=lambda word: sum((a - b) ** 2 for a, b in zip(_WORDS[word], given, strict=True)))
