"""A page as shortened HTML: what is shown, with the ids of its elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape

from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.observe.redaction import SHOWN, Redaction
from exact.observation import Element

_OMITTED = ("script", "style", "noscript", "template", "head", "link", "meta", "base", "#comment")
_OPAQUE = ("svg", "canvas", "video", "audio", "object", "embed")
"""Elements whose content is left out."""
_VOID = ("area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr")
_ATTRIBUTES = (
    *("type", "name", "href", "src", "alt", "title", "placeholder", "role", "for", "colspan", "rowspan", "action", "method", "label"),
    *("multiple", "contenteditable", "draggable", "min", "max"),
)
_INLINE = (
    *("a", "abbr", "b", "bdi", "bdo", "br", "cite", "code", "em", "i", "img", "kbd", "label", "mark", "q", "s", "samp", "small"),
    *("span", "strong", "sub", "sup", "time", "u", "var", "wbr"),
)
_MOST_CHARACTERS = 200
"""Most characters of an attribute."""
_LINE_ENDS = {ord(end): f"&#{ord(end)};" for end in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}
"""What ends a line, written out, so that an attribute stays on its line."""
_STATES = ("checked", "disabled", "expanded", "collapsed", "focused", "pressed", "readonly", "required", "selected")


def page_html(
    documents: Sequence[Document],
    known: Mapping[tuple[str, int], Element],
    redaction: Redaction | None = None,
    hide: Callable[[str], str] = str,
) -> str:
    """Return the page as HTML, one block a line; `exact="12"` is the id of an element.

    `known`: the elements by frame and backend id. `hide` removes from a text what an agent may not read, before it is cut off or escaped.
    """
    if not documents:
        return ""
    text = "".join(_Writer(documents, known, redaction, hide).document(0))
    return "\n".join(line.strip() for line in text.splitlines() if line.strip())


class _Writer:
    """Writes the HTML of a page's documents."""

    def __init__(
        self,
        documents: Sequence[Document],
        known: Mapping[tuple[str, int], Element],
        redaction: Redaction | None,
        hide: Callable[[str], str],
    ) -> None:
        self.documents, self.known, self.redaction, self.hide = documents, known, redaction, hide
        self.children: list[list[list[int]]] = []
        self.drawn: list[list[bool]] = []
        for document in documents:
            below: list[list[int]] = [[] for _ in document.nodes]
            drawn = [node.box is not None or node.name in ("option", "optgroup") for node in document.nodes]
            for node in document.nodes:
                if node.parent >= 0:
                    below[node.parent].append(node.index)
            for node in reversed(document.nodes):
                if node.parent >= 0:
                    drawn[node.parent] = drawn[node.parent] or drawn[node.index]
            self.children.append(below)
            self.drawn.append(drawn)

    def document(self, index: int) -> Iterator[str]:
        """Yield the HTML of one document."""
        for node in self.documents[index].nodes:
            if node.parent < 0:
                yield from self.inside(index, node)

    def inside(self, index: int, node: DomNode) -> Iterator[str]:
        nodes = self.documents[index].nodes
        for at in self.children[index][node.index]:
            yield from self.node(index, nodes[at])

    def node(self, index: int, node: DomNode) -> Iterator[str]:
        if node.kind == 3:
            yield escape(self._hidden(node, node.text)) + (" " if node.text[-1:].isspace() else "")
        elif node.kind in (9, 11):
            yield from self.inside(index, node)
        elif node.kind == 1 and not node.internal and node.name not in _OMITTED and self.drawn[index][node.index]:
            yield from self.element(index, node)

    def element(self, index: int, node: DomNode) -> Iterator[str]:
        line = "" if node.name in _INLINE else "\n"
        yield f"{line}<{node.name}{self._attributes(index, node)}>"
        if node.name in _VOID:
            return
        if node.masked:
            yield SHOWN
        elif 0 <= node.content < len(self.documents):
            yield from self.document(node.content)
        elif node.name not in _OPAQUE:
            yield from self.inside(index, node)
        yield f"</{node.name}>{line}"

    def _attributes(self, index: int, node: DomNode) -> str:
        known = self.known.get((self.documents[index].frame, node.backend))
        found: dict[str, str] = {"exact": known.id} if known else {}
        found |= {key: node.attributes[key] for key in _ATTRIBUTES if key in node.attributes}
        found |= {key: value for key, value in node.attributes.items() if key.startswith("aria-")}
        if known and known.value is not None:
            found["value"] = known.value
        found |= {state: "" for state in _STATES if known and state in known.states}
        shown = ((key, self._shown(node, key, value)[:_MOST_CHARACTERS]) for key, value in found.items())
        return "".join(f' {key}="{escape(value).translate(_LINE_ENDS)}"' if value else f" {key}" for key, value in shown)

    def _shown(self, node: DomNode, key: str, value: str) -> str:
        """Return an attribute's value as it is shown: that of a field keeps its white space, unless more of it is hidden."""
        if key == "exact":
            return value
        hidden = self._hidden(node, value)
        spaced = self.hide(value) if key == "value" else ""
        return spaced if " ".join(spaced.split()) == hidden else hidden

    def _hidden(self, node: DomNode, text: str) -> str:
        text = " ".join(self.hide(text).split())
        return self.redaction.name(node, text) if self.redaction else text
