"""Redaction of masked elements: they are blank in screenshots and removed from all text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from exact.environments.browser.observe.dom import MASKED, Document, DomNode
from exact.errors import UsageError

SHOWN = "(masked)"
_SHORTEST = 3
"""Fewest characters of a masked text that is removed elsewhere on the page too; shorter texts occur everywhere."""
_ATTRIBUTES = ("value", "alt", "title", "placeholder", "aria-label", "aria-description", "href", "src")


def rules(selectors: Iterable[str]) -> str:
    """Return the style sheet that blanks and marks matches of the selectors. Raises UsageError for a selector that would end the rule."""
    given = [selector.strip() for selector in selectors if selector.strip()]
    for selector in given:
        if re.search(r"[{}<;]", selector):
            raise UsageError(f"mask {selector!r} is no CSS selector: write one such as '.balance'")
    return f":is({', '.join(given)}) {{ opacity: 0 !important; orphans: {MASKED} !important }}" if given else ""


class Redaction:
    """Removes the masked texts of one page."""

    def __init__(self, documents: Sequence[Document], accessible: Iterable[dict[str, Any]]) -> None:
        hidden = {node.backend for document in documents for node in document.nodes if node.masked}
        found = {_flat(text) for document in documents for text in _texts(document)}
        for each in accessible:
            if each.get("backendDOMNodeId") in hidden:
                found |= {_flat(str(each.get(key, {}).get("value", ""))) for key in ("name", "value", "description")}
        secrets = sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    @classmethod
    def for_page(cls, documents: Sequence[Document], accessible: Sequence[dict[str, Any]]) -> Redaction | None:
        """Return the redaction of a page; None if nothing is masked."""
        return cls(documents, accessible) if any(node.masked for document in documents for node in document.nodes) else None

    def name(self, node: DomNode, text: str) -> str:
        """Return a text of a node, such as its name, as it may be shown."""
        return (SHOWN if text else "") if node.masked else self.text(text)

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


def _flat(text: str) -> str:
    return " ".join(text.split())
