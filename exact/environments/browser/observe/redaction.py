"""What is masked: blank in pictures, and gone from all text before anybody sees it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from exact.environments.browser.observe.dom import MASKED, Document, DomNode
from exact.errors import UsageError

SHOWN = "(masked)"
_SHORTEST = 3
"""Characters of a masked text that is looked for elsewhere on the page; shorter ones are everywhere."""
_TOLD = ("value", "alt", "title", "placeholder", "aria-label", "aria-description", "href", "src")


def rules(selectors: Iterable[str]) -> str:
    """The style sheet that makes what the selectors match blank, and marks it. Raises UsageError for one that would end the rule."""
    given = [selector.strip() for selector in selectors if selector.strip()]
    for selector in given:
        if re.search(r"[{}<;]", selector):
            raise UsageError(f"mask {selector!r} is no CSS selector: write one such as '.balance'")
    return f":is({', '.join(given)}) {{ opacity: 0 !important; orphans: {MASKED} !important }}" if given else ""


class Redaction:
    """What must not be told of one page."""

    def __init__(self, documents: Sequence[Document], accessible: Iterable[dict[str, Any]]) -> None:
        hidden = {node.backend for document in documents for node in document.nodes if node.masked}
        found = {_flat(text) for document in documents for text in _texts(document)}
        for each in accessible:
            if each.get("backendDOMNodeId") in hidden:
                found |= {_flat(str(each.get(key, {}).get("value", ""))) for key in ("name", "value", "description")}
        secrets = sorted((text for text in found if len(text) >= _SHORTEST), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, secrets))) if secrets else None

    @classmethod
    def of(cls, documents: Sequence[Document], accessible: Sequence[dict[str, Any]]) -> Redaction | None:
        """None where nothing is masked."""
        return cls(documents, accessible) if any(node.masked for document in documents for node in document.nodes) else None

    def name(self, node: DomNode, text: str) -> str:
        """A text that a node has."""
        return (SHOWN if text else "") if node.masked else self.text(text)

    def text(self, text: str) -> str:
        """Any text of the page: what is masked may be told there too."""
        return self._secrets.sub(SHOWN, text) if self._secrets else text


def _texts(document: Document) -> Iterator[str]:
    """What masked nodes say, and what masked parts say as a whole."""
    for node in document.nodes:
        if not node.masked:
            continue
        yield node.text
        yield from (node.attributes[key] for key in _TOLD if key in node.attributes)
        if node.parent < 0 or not document.nodes[node.parent].masked:
            inner = [each.text for each in document.nodes[node.index : node.end] if each.kind == 3]
            yield "".join(inner)
            yield " ".join(inner)


def _flat(text: str) -> str:
    return " ".join(text.split())
