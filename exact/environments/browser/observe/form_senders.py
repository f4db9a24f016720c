"""The controls of a page that send a form with a write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from exact.environments.browser.observe.dom import Document, DomNode

_BUTTONS = ("submit", "image")
_FIELDS = ("text", "search", "email", "password", "tel", "url", "number", "date", "datetime-local", "month", "time", "week")
"""Types of inputs in which Enter sends the form."""


def form_senders(documents: Sequence[Document]) -> Iterator[tuple[str, int]]:
    """Yield frame and backend id of each control that posts a form: buttons, and fields in which Enter does.

    What a script sends is not known in advance.
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
    """Return the form of a control in its document; None where it belongs to none."""
    return _owner(node, [each for each in document.nodes if each.name == "form"])


def _owner(node: DomNode, forms: Sequence[DomNode]) -> DomNode | None:
    """Return the form of a control: the one that its attribute names, otherwise the innermost one around it.

    A button whose `type` says that it submits may belong to a form that is not around it: a tag that was closed too early ended the form's
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
