"""Presumed changes by the controls of a page, read from its document: the forms that they send, their addresses, attributes and names.

The controls of a page that send a form with a write.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import urljoin

from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.presume.address import address_writes, writing_address
from exact.environments.browser.presume.words import copies, plain, writing_word
from exact.observation import Element

OUTSIDE = ("mailto", "tel", "sms", "facetime", "skype", "whatsapp", "msteams", "zoommtg")
"""Schemes of addresses that another program opens."""
_METHOD_ATTRIBUTES = ("data-method", "data-turbo-method", "data-http-method", "data-verb")
_SENDING_ATTRIBUTES = (
    "hx-post",
    "hx-put",
    "hx-patch",
    "hx-delete",
    "data-hx-post",
    "data-hx-delete",
    "ic-post-to",
    "ic-delete-from",
    "ping",
)
_HINTS = ("onclick", "data-action", "data-testid", "data-command", "ng-click", "@click", "v-on:click", "id")
"""Attributes whose words describe the purpose of an icon without a name."""
_PRESSED = frozenset({"button", "menuitem", "switch", "option", "menuitemcheckbox"})
_AROUND = 4
"""Ancestors of an element in which the control that it belongs to is looked for."""


class Presumption(NamedTuple):
    """Presumed change by a control."""

    why: str
    """In words, for people and agents."""
    kind: str = "request"
    """`request`: it sends one. `clipboard`: it copies to it. Else the scheme of an address that another program opens."""
    url: str = ""
    """The address of such a program."""
    certain: bool = False
    """Whether its form or attributes show it, not its words alone."""


class Controls(NamedTuple):
    """The controls of one page, by element id."""

    clicks: Mapping[str, Presumption]
    """Presumed change by a click on an element."""
    fields: Mapping[str, Presumption]
    """Presumed change by Enter in a field."""


NO_CONTROLS = Controls({}, {})


def controls(documents: Sequence[Document], elements: Sequence[Element], nodes: Mapping[str, tuple[str, int]]) -> Controls:
    """Return the presumed changes by the elements of a page. `nodes`: frame and backend id of the node of an element, by its id."""
    senders = set(form_senders(documents))
    places = {(document.frame, node.backend): (document, node) for document in documents for node in document.nodes if node.kind == 1}
    names = _sending_names(documents, senders)
    clicks, fields = dict[str, Presumption](), dict[str, Presumption]()
    for element in elements:
        key = nodes.get(element.id)
        if key is None or key not in places:
            continue
        document, node = places[key]
        if key in senders and kind_of(node) == "field":
            fields[element.id] = Presumption(f'Enter in {element.role} "{element.name}" sends a form', certain=True)
        elif found := _of_click(document, node, element, senders):
            clicks[element.id] = found
        elif element.role == "button" and plain(element.name) in names:
            clicks[element.id] = Presumption(f'button "{element.name}" is named like one that sends a form')
    return Controls(clicks, fields)


def _sending_names(documents: Sequence[Document], senders: set[tuple[str, int]]) -> frozenset[str]:
    """Return the names of the buttons that post a form, hidden ones included: a script may press them for another button."""
    found = set[str]()
    for document in documents:
        for node in document.nodes:
            if (document.frame, node.backend) in senders and kind_of(node) == "submit":
                inside = (each.text for each in document.nodes[node.index + 1 : node.end] if each.kind == 3)
                found.add(plain(node.value or node.attributes.get("value", "") or " ".join(inside)))
    return frozenset(found - {""})


def _of_click(document: Document, node: DomNode, element: Element, senders: set[tuple[str, int]]) -> Presumption | None:
    """Return the presumed change by a click on an element; None if nothing indicates one."""
    shown = f'{element.role} "{element.name}"'
    for near in _around(document, node):
        if (document.frame, near.backend) in senders and kind_of(near) == "submit":
            return Presumption(f"{shown} sends a form", certain=True)
        method = next((value for name in _METHOD_ATTRIBUTES if (value := near.attributes.get(name, "").strip().upper())), "")
        if method not in ("", "GET", "HEAD") or any(near.attributes.get(name) for name in _SENDING_ATTRIBUTES):
            return Presumption(f"{shown} sends a {method or 'write'}", certain=True)
        if near.name in ("a", "area") and (href := near.attributes.get("href", "").strip()) and not _is_script(href):
            return _of_link(urljoin(document.url, href), element, shown)
        if near.name in ("a", "area", "button", "input", "summary") or near.attributes.get("role"):
            node = near
            break
    if kind_of(node) == "submit" and (form := form_of(node, document)) is not None:
        address = urljoin(document.url, node.attributes.get("formaction") or form.attributes.get("action", ""))
        if (word := writing_word(element.name)) or (word := writing_address(address)):
            return Presumption(f"{shown} sends a form and says {word!r}")
        return None
    if kind_of(node) == "field" or node.name in ("select", "textarea", "summary"):
        return None
    if element.role in _PRESSED or node.name in ("button", "a", "area") or node.clickable:
        return _of_button(node, element, shown)
    return None


def _of_link(url: str, element: Element, shown: str) -> Presumption | None:
    scheme = url.partition(":")[0].lower()
    if scheme in OUTSIDE:
        return Presumption(f"{shown} opens {scheme}:", scheme, url, certain=True)
    if address_writes(url):
        return Presumption(f"{shown} leads to an address that writes", certain=True)
    if word := writing_address(url) or writing_word(element.name, link=True):
        return Presumption(f"{shown} leads to an address and says {word!r}")
    return None


def _of_button(node: DomNode, element: Element, shown: str) -> Presumption | None:
    if copies(element.name):
        return Presumption(f"{shown} copies to the clipboard", "clipboard")
    if element.role in ("checkbox", "radio", "tab", "treeitem") or {"expanded", "collapsed"} & set(element.states):
        return None
    if word := writing_word(element.name or node.attributes.get("title", "") or node.attributes.get("value", "")):
        return Presumption(f"{shown} says {word!r}")
    if any(each.isalpha() for each in element.name):
        return None
    hints = (writing_word(_as_words(node.attributes.get(name, "")[:60])) for name in _HINTS)
    word = next(filter(None, hints), "")
    return Presumption(f"{shown} is marked {word!r}") if word else None


def _around(document: Document, node: DomNode) -> list[DomNode]:
    """Return an element and the nearest ancestors that it may be a part of, itself first."""
    found = [node]
    while found[-1].parent >= 0 and len(found) <= _AROUND:
        above = document.nodes[found[-1].parent]
        if above.name in ("form", "body", "html", "td", "li", "nav", "main", "table", "ul", "section", "dialog") or above.kind != 1:
            break
        found.append(above)
    return found


def _is_script(href: str) -> bool:
    return href.startswith("#") or href.lower().startswith("javascript:")


def _as_words(identifier: str) -> str:
    """Return the words of an identifier or a call: `deleteItem(3)` gives "delete Item"."""
    return " ".join(re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", identifier.partition("(")[0]))


_BUTTONS = ("submit", "image")
_FIELDS = ("text", "search", "email", "password", "tel", "url", "number", "date", "datetime-local", "month", "time", "week")
"""Types of inputs in which Enter sends the form."""


def form_senders(documents: Sequence[Document]) -> Iterator[tuple[str, int]]:
    """Yield frame and backend id of each control that posts a form: buttons, and fields in which Enter does.

    Requests of scripts are not known in advance.
    """
    for document in documents:
        forms = [node for node in document.nodes if node.name == "form"]
        for node in document.nodes if forms else ():
            kind = kind_of(node)
            form = _owner(node, forms) if kind else None
            if form is not None and _writes(node, form, kind):
                yield document.frame, node.backend


def kind_of(node: DomNode) -> str:
    """Return how a control sends its form: `submit` on a click, `field` on Enter; empty if it does not."""
    type = node.attributes.get("type", "").lower()
    if node.name == "button":
        return "" if type in ("button", "reset") else "submit"
    if node.name != "input":
        return ""
    return "submit" if type in _BUTTONS else "field" if (type or "text") in _FIELDS else ""


def form_of(node: DomNode, document: Document) -> DomNode | None:
    """Return the form of a control in its document; None if it belongs to none."""
    return _owner(node, [each for each in document.nodes if each.name == "form"])


def _owner(node: DomNode, forms: Sequence[DomNode]) -> DomNode | None:
    """Return the form of a control: the one that its attribute names, otherwise the innermost one around it.

    A button with the `type` of a submit button may belong to a form that is not around it: a tag that was closed too early ended the form's
    element, and the parser went on to give controls to the form. Then the last form before it is taken.
    """
    if name := node.attributes.get("form"):
        return next((form for form in forms if form.attributes.get("id") == name), None)
    around = next((form for form in reversed(forms) if form.index < node.index < form.end), None)
    if around is None and node.attributes.get("type", "").lower() in _BUTTONS:
        return next((form for form in reversed(forms) if form.index < node.index), None)
    return around


def _writes(node: DomNode, form: DomNode, kind: str) -> bool:
    own = node.attributes.get("formmethod", "") if kind == "submit" else ""
    return (own or form.attributes.get("method", "")).strip().lower() == "post"
