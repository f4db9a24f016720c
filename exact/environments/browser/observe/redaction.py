"""Redaction of masked elements, which are blank in screenshots and removed from all text, and of fields that hold a typed secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from exact.environments.browser.observe.dom import MASKED, Document, DomNode, document_paths
from exact.errors import UsageError

SHOWN = "(masked)"
_SHORTEST, _TYPED = 3, 6
"""Fewest characters of a masked text, and of one in a field with a secret, that are removed elsewhere on the page too; shorter texts occur
everywhere."""
_ATTRIBUTES = ("value", "alt", "title", "placeholder", "aria-label", "aria-description", "href", "src")


def rules(selectors: Iterable[str]) -> str:
    """Return the style sheet that blanks and marks matches of the selectors. Raises UsageError for a selector that would end the rule."""
    given = [selector.strip() for selector in selectors if selector.strip()]
    for selector in given:
        if re.search(r"[{}<;]", selector):
            raise UsageError(f"mask {selector!r} is no CSS selector: write one such as '.balance'")
    return f":is({', '.join(given)}) {{ opacity: 0 !important; orphans: {MASKED} !important }}" if given else ""


class TypedFields(NamedTuple):
    """The fields that hold a typed secret, in whatever form the page brings it."""

    backends: set[int]
    """Backend ids of those in the present document."""
    paths: set[str]
    """Paths of those whose backend ids are not known yet."""
    is_spelled: Callable[[str], bool]
    """Returns whether a text spells a secret, so that it is known by its name."""

    def among(self, documents: Sequence[Document]) -> Iterator[tuple[Document, DomNode]]:
        """Yield the fields."""
        found = document_paths(documents) if self.paths else {}
        for document in documents if self.backends or self.paths else ():
            for node in document.nodes:
                if node.backend in self.backends or found.get((document.frame, node.backend)) in self.paths:
                    yield document, node

    def on(self, documents: Sequence[Document]) -> Iterator[tuple[Document, DomNode]]:
        """Yield the fields whose content spells no secret: it is masked by its place alone."""
        for document, node in self.among(documents):
            if is_password(node):  # the browser shows its value as dots
                continue
            if (content := _content(document, node)) and not self.is_spelled(content):
                yield document, node


class Redaction:
    """Removes the masked texts of one page."""

    def __init__(self, documents: Sequence[Document], accessible: Iterable[dict[str, Any]], typed: TypedFields | None = None) -> None:
        hidden = {node.backend for document in documents for node in document.nodes if node.masked}
        found = {_flat(text) for document in documents for text in _texts(document)}
        for each in accessible:
            if each.get("backendDOMNodeId") in hidden:
                found |= {_flat(str(each.get(key, {}).get("value", ""))) for key in ("name", "value", "description")}
        fields = list(typed.on(documents)) if typed else []
        self._fields = {id(node) for _, node in fields}
        """Fields whose content is masked, though not their names."""
        self._inside = {id(each) for document, node in fields for each in document.nodes[node.index + 1 : node.end]}
        written = {_flat(_content(*field)) for field in fields}
        kept = {text for text in found if len(text) >= _SHORTEST} | {text for text in written if len(text) >= _TYPED}
        secrets = sorted(kept, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    @classmethod
    def for_page(
        cls, documents: Sequence[Document], accessible: Sequence[dict[str, Any]], typed: TypedFields | None = None
    ) -> Redaction | None:
        """Return the redaction of a page; None if nothing is masked."""
        is_masked = any(node.masked for document in documents for node in document.nodes) or (typed and any(typed.on(documents)))
        return cls(documents, accessible, typed) if is_masked else None

    def name(self, node: DomNode, text: str) -> str:
        """Return a text of a node, such as its name, as it may be shown."""
        return (SHOWN if text else "") if node.masked or id(node) in self._inside else self.text(text)

    def value(self, node: DomNode, text: str) -> str:
        """Return the content of a field as it may be shown."""
        return SHOWN if text and id(node) in self._fields else self.name(node, text)

    def text(self, text: str) -> str:
        """Return a text of the page without the masked texts, which it may repeat."""
        return self._secrets.sub(SHOWN, text) if self._secrets else text


def _texts(document: Document) -> Iterator[str]:
    """Yield the texts of masked nodes, and of masked subtrees as a whole."""
    for node in document.nodes:
        if not node.masked:
            continue
        yield node.text
        yield from (node.attributes[key] for key in _ATTRIBUTES if key in node.attributes)
        if node.parent < 0 or not document.nodes[node.parent].masked:
            inner = [each.text for each in document.nodes[node.index : node.end] if each.kind == 3]
            yield "".join(inner)
            yield " ".join(inner)


def is_password(node: DomNode) -> bool:
    """Return whether a node is a field for a password."""
    return node.name == "input" and node.attributes.get("type", "").lower() == "password"


def _content(document: Document, node: DomNode) -> str:
    """Return the content of a field, or the text in an element that is edited."""
    return node.value or "".join(each.text for each in document.nodes[node.index : node.end] if each.kind == 3 and not each.internal)


def _flat(text: str) -> str:
    return " ".join(text.split())
