"""Roles, names, values and states that HTML gives to elements, for elements that the browser's accessibility tree leaves out."""

from __future__ import annotations

from exact.environments.browser.observe.colour import colour_word
from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.observe.words import flat, has_words

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
"""Names that the browser's accessibility tree gives to ARIA roles, where they differ."""
_BY_CONTENT = ("button", "link", "heading", "option", "tab", "menuitem", "checkbox", "radio", "switch", "treeitem", "DisclosureTriangle")
"""Roles whose name is their content."""
_UNSHOWN_TEXT = ("script", "style", "noscript", "template", "title")
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
    """Return the name of an element: by ARIA, label, attribute or content; for an input without words, what tells it from others."""
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
    """Return the value of a field; None where the element is none, or it is empty."""
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


def drawn_words(node: DomNode, document: Document, *, boxes: bool = True) -> str:
    """Return the text in an element. `boxes`: only what is drawn, style sheets' text included."""
    inside = document.nodes[node.index + 1 : node.end]
    said = (
        each.text
        for each in inside
        if (each.kind == 3 and document.nodes[each.parent].name not in _UNSHOWN_TEXT and (each.box is not None or not boxes))
        or each.name in ("::before", "::after")
    )
    return flat(" ".join(text for text in said if has_words(text)))


def _pictured(label: DomNode, document: Document) -> str:
    """Return what a label without text says: by its own attributes, or by those of a picture in it."""
    for each in document.nodes[label.index : label.end]:
        for key in ("aria-label", "title", "alt"):
            if each.name != "input" and each.attributes.get(key):
                return flat(each.attributes[key])
    return ""
