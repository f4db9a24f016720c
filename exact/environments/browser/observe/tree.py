"""The elements of a page: nodes of Chromium's accessibility tree, joined with the DOM's boxes and listeners.

Each node of the accessibility tree is an element, except wrappers without a meaning. Nodes without a role that react to clicks, and shapes
drawn in SVG, are elements too (`generic`, `graphics-symbol`), named by text, title or looks: an agent can only act on elements with an id.

Frames of captchas. Their content belongs to another site and is not observed, so the frame itself is an element.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from exact.environments.browser.observe.dom import Document, DomNode
from exact.environments.browser.observe.implied import colour_word, flat, implied_nodes, repeated, suggestions
from exact.environments.browser.observe.media import MediaStates
from exact.environments.browser.observe.redaction import Redaction
from exact.environments.browser.page.ids import Ids, NodeLocation, NodeSignature
from exact.observation import Element


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_WRAPPERS = _set("""
    generic none presentation InlineTextBox LineBreak RootWebArea paragraph LabelText Legend emphasis strong code mark superscript subscript
    Abbr time Section LayoutTable LayoutTableRow LayoutTableCell rowgroup MenuListPopup Iframe IframePresentational ListMarker SvgRoot
    graphics-document graphics-object FooterAsNonLandmark HeaderAsNonLandmark sectionheader sectionfooter Pre insertion deletion
    DescriptionList Ruby RubyAnnotation blockquote
""")
"""Roles of wrappers, which are left out: only their content matters."""
CONTROLS = _set("""
    button link textbox searchbox combobox checkbox radio switch slider spinbutton option menuitem menuitemcheckbox menuitemradio tab
    treeitem listbox ColorWell Date DateTime InputTime DisclosureTriangle ToggleButton PopUpButton
""")
"""Roles that are acted on as a whole: their content is offered only if it is a control too."""
_KEYBOARD = _set("textbox searchbox combobox spinbutton slider listbox radio switch tree grid menu tablist generic")
"""Roles whose focus changes the effect of typing."""
_STATES = {
    "checked": {"true": "checked", "mixed": "mixed"},
    "pressed": {"true": "pressed", "mixed": "mixed"},
    "expanded": {"true": "expanded", "false": "collapsed"},
    **{name: {"true": name} for name in ("disabled", "focused", "readonly", "required", "selected", "invalid", "multiselectable", "modal")},
}
_SORTS = {"ascending": "ascending", "descending": "descending", "other": "sorted"}
_STRUCK = "struck"
"""State of text with a line through it."""
_STRIKES = ("s", "del", "strike")
_APART = ("inline-block", "inline-flex", "inline-grid", "inline-table")
"""Values of `display` of elements that a line through the text around them does not cross."""
_FIELDS = ("textbox", "searchbox")
_CHOSEN = frozenset({"selected", "is-selected", "checked", "is-checked"})
"""Classes by which pages style chosen items. They count if an element has no role, so that nothing else can show it."""
_SHAPES = {
    "rect": "rectangle",
    "circle": "circle",
    "ellipse": "ellipse",
    "polygon": "polygon",
    "polyline": "line",
    "path": "path",
    "line": "line",
    "text": "text",
    "g": "group",
}
_MANY = 100
"""Shapes in a document above which only those that react to clicks are elements."""
_NAMED_HERE = ("generic", "graphics-symbol")
"""Roles whose name is made here of the text inside."""
_UNSHOWN_TEXT = ("script", "style", "noscript", "template", "title", "option", "textarea")


@dataclass(slots=True)
class _Draft:
    node: DomNode
    document: Document
    role: str
    name: str
    parent: int
    depth: int
    value: str | None = None
    states: tuple[str, ...] = ()
    nested: int = 0
    """Number of its children that are not text."""
    dropped: bool = False
    written: str = ""
    """The value of a text field with its white space. It is not shown if it differs by more: masked or omitted text stays so."""

    def add_states(self, *states: str) -> None:
        if states:
            self.states = tuple(sorted({*self.states, *states}))


class _Tree:
    """Builds drafts of elements in document order."""

    def __init__(self, documents: Sequence[Document], accessible: Iterable[dict[str, Any]], media: MediaStates) -> None:
        self.documents, self.media = documents, media
        self.accessible = {each["backendDOMNodeId"]: each for each in accessible if "backendDOMNodeId" in each}
        for document in documents:
            self.accessible |= implied_nodes(document, self.accessible)
        self.drafts: list[_Draft] = []
        self._suggested = set[int]()

    def grow(self, index: int, parent: int) -> None:
        document = self.documents[index]
        few = sum(node.name in _SHAPES for node in document.nodes) <= _MANY
        holders = [parent] * len(document.nodes)
        struck = _struck(document.nodes)
        for node in _as_drawn(document.nodes):
            holder = holders[node.parent] if node.parent >= 0 else parent
            made = None if node.internal else self._draft(node, document, holder, few)
            if made is None and (playing := self.media.get((document.frame, node.backend))) and playing.heard:
                made = _Draft(node, document, "Audio", "", holder, self.drafts[holder].depth + 1 if holder >= 0 else 0)
            if made:
                if self.media:
                    self._add_media(made)
                if node.index in struck and made.role in ("StaticText", *_FIELDS):
                    made.add_states(_STRUCK)
                if node.attributes:
                    made.add_states(*_attribute_states(node))
                if holder >= 0 and made.role != "StaticText":
                    self.drafts[holder].nested += 1
                self.drafts.append(made)
                holder = len(self.drafts) - 1
                for option, name in suggestions(node, document, self._suggested) if node.name == "input" else ():
                    self.drafts.append(_Draft(option, document, "option", name, holder, made.depth + 1))
            elif holder >= 0 and self.drafts[holder].role in CONTROLS and node.box is not None:
                self.drafts[holder].add_states(*_attribute_states(node))
            holders[node.index] = holder
            if 0 <= node.content < len(self.documents):
                self.grow(node.content, holder)

    def _add_media(self, draft: _Draft) -> None:
        """Add the state of a video or sound."""
        if playing := self.media.get((draft.document.frame, draft.node.backend)):
            draft.add_states(*playing.states)
            draft.value = playing.place

    def _draft(self, node: DomNode, document: Document, holder: int, few: bool) -> _Draft | None:
        around = self.drafts[holder] if holder >= 0 else None
        depth = around.depth + 1 if around else 0
        if node.name == "iframe" and (asks := captcha(node, document)):
            return _Draft(node, document, "Iframe", flat(asks), holder, depth)
        found = self.accessible.get(node.backend)
        if found and not found.get("ignored"):
            role = str(found.get("role", {}).get("value", ""))
            name = _text(found, "name")
            if node.kind == 3 or role == "StaticText":
                drawn_only = not name.isascii() and around is not None and around.name and _is_icon(name)
                return _Draft(node, document, "StaticText", name, holder, depth) if name and not drawn_only else None
            if not name.isascii() and _is_icon(name):
                name = _text(found, "description") or name
            if "contenteditable" in node.attributes and role in _WRAPPERS:
                role = "textbox"
            if role not in _WRAPPERS:
                if node.name in _SHAPES and not name:
                    name = _label(node, document, "graphics-symbol")
                value = _text_value(found)
                written = value if value is not None and role in _FIELDS else ""
                return _Draft(node, document, role, name, holder, depth, value and flat(value), _states(found), written=written)
            states = _states(found)
        else:
            states, name = (), ""
        role = self._unnamed_role(node, document, around, few)
        if not role:
            return None
        if not _CHOSEN.isdisjoint(node.attributes.get("class", "").split()):
            states = tuple(sorted({*states, "selected"}))
        return _Draft(node, document, role, name or _label(node, document, role), holder, depth, None, states)

    def _unnamed_role(self, node: DomNode, document: Document, around: _Draft | None, few: bool) -> str:
        """Return the role that a node without a meaningful role is offered as; empty if it is not offered."""
        if node.kind != 1 or node.box is None or node.name in ("html", "body", "iframe", "frame", "option", "label"):
            return ""
        if node.styles.get("visibility") == "hidden" or node.styles.get("pointer-events") == "none":
            return ""
        if node.box.width <= 0 and node.box.height <= 0:
            return ""
        inside_control = around is not None and around.role in CONTROLS
        above = document.nodes[node.parent].styles.get("cursor") if node.parent >= 0 else ""
        reacts = node.clickable or (node.styles.get("cursor") == "pointer" and above != "pointer") or "tabindex" in node.attributes
        reacts = reacts or bool(_attribute_states(node))
        drawn = node.name in _SHAPES and _in_svg(node, document)
        if drawn:
            coloured = colour_word(node.styles.get("fill", "")) not in ("", "black", "white", "grey")
            plain = few and (coloured if node.name == "text" else node.name not in ("path", "g"))
            return "graphics-symbol" if (node.clickable or plain) and not inside_control else ""
        return "generic" if reacts and not inside_control and node.name != "svg" else ""


def _as_drawn(nodes: Sequence[DomNode]) -> Iterator[DomNode]:
    """Yield nodes in document order, the text that a style sheet generates after an element at the element's end."""
    last = [node for node in nodes if node.name == "::after"]
    if not last:
        yield from nodes
        return
    waiting = list[DomNode]()
    for node in nodes:
        while waiting and nodes[waiting[-1].parent].end <= node.index:
            yield waiting.pop()
        if node.name == "::after":
            waiting.append(node)
        else:
            yield node
    yield from reversed(waiting)


def build_elements(
    documents: Sequence[Document],
    accessible: Iterable[dict[str, Any]],
    ids: Ids,
    tab: int,
    generation: int,
    redaction: Redaction | None = None,
    media: MediaStates | None = None,
) -> tuple[Element, ...]:
    """Return the elements of a page in document order, without those that `redaction` removes.

    `accessible`: the nodes of `Accessibility.getFullAXTree` of every frame. `tab` and `generation` tell apart equal DOM ids of different
    pages. `media`: states of videos and sounds.
    """
    if not documents:
        return ()
    tree = _Tree(documents, accessible, media or {})
    tree.grow(0, -1)
    if redaction:
        for draft in tree.drafts:
            draft.name = redaction.name(draft.node, draft.name)
            draft.value = None if draft.value is None else redaction.value(draft.node, draft.value)
    _fold(tree.drafts)
    depths: list[int] = []
    for draft in tree.drafts:
        above = depths[draft.parent] if draft.parent >= 0 else -1
        depths.append(above if draft.dropped else above + 1)
    retained = [(draft, depth) for draft, depth in zip(tree.drafts, depths, strict=True) if not draft.dropped]
    locations = [NodeLocation(tab, generation, draft.node.backend, draft.document.frame) for draft, _ in retained]
    element_ids = ids.give(locations, [NodeSignature(depth, draft.role, replace_surrogates(draft.name)) for draft, depth in retained])
    return tuple(_element(draft, id, depth, tree.drafts) for (draft, depth), id in zip(retained, element_ids, strict=True))


def _fold(drafts: list[_Draft]) -> None:
    """Drop text that an element repeats, and move text into elements that contain nothing else."""
    texts: dict[int, list[_Draft]] = {}
    control_names = {draft.name for draft in drafts if draft.role in CONTROLS}
    for draft in drafts:
        if draft.role == "StaticText":
            texts.setdefault(draft.parent, []).append(draft)
            draft.dropped = draft.name in control_names and _STRUCK not in draft.states and _is_in_label(draft)
        draft.dropped = draft.dropped or (draft.node.name == "svg" and not draft.name and draft.nested > 0)
    for index, found in texts.items():
        if index < 0:
            continue
        holder = drafts[index]
        lines = {_STRUCK in draft.states for draft in found}
        if not holder.name and not holder.nested and holder.value is None and len(lines) == 1:
            holder.name = flat(" ".join(draft.name for draft in found))
        own = holder.name if holder.role in _NAMED_HERE else holder.value or ""
        for draft, said in zip(found, repeated([draft.name for draft in found], holder.name, own), strict=True):
            draft.dropped = draft.dropped or (said and (len(lines) == 1 or _STRUCK not in draft.states))
        if lines == {True} and all(draft.dropped for draft in found):
            holder.add_states(_STRUCK)


def _is_in_label(draft: _Draft) -> bool:
    node = draft.node
    while node.parent >= 0 and node.name in ("#text", "span", "b", "strong", "i", "em", "small", "div"):
        node = draft.document.nodes[node.parent]
    return node.name == "label"


def _element(draft: _Draft, id: str, depth: int, drafts: list[_Draft]) -> Element:
    visible = draft.node.shown is not None
    if draft.role == "option" and draft.node.box is None and draft.parent >= 0:
        visible = drafts[draft.parent].node.shown is not None
    return Element(
        id=id,
        role=draft.role,
        name=replace_surrogates(draft.name),
        value=None if draft.value is None else replace_surrogates(draft.written if flat(draft.written) == draft.value else draft.value),
        states=draft.states,
        visible=visible,
        box=draft.node.box,
        depth=depth,
    )


def _states(found: dict[str, Any]) -> tuple[str, ...]:
    states = list[str]()
    for each in found.get("properties", ()):
        if (words := _STATES.get(each["name"])) and (word := words.get(str(each["value"].get("value", "")).lower())):
            states.append(word)
    return tuple(sorted(set(states))) if states else ()


def _attribute_states(node: DomNode) -> list[str]:
    """Return the states that the browser's accessibility tree leaves out: the current one of several, and the order of a sorted column."""
    found = ["current"] if node.attributes.get("aria-current", "false") not in ("", "false") else []
    if order := _SORTS.get(node.attributes.get("aria-sort", "")):
        found.append(order)
    return found


def _struck(nodes: Sequence[DomNode]) -> set[int]:
    """Return the indices of the nodes with a line through their text: by a style of their own or around them, or by their tag."""
    found = set[int]()
    for node in nodes:
        styles, is_element = node.styles, node.kind == 1
        own = is_element and (node.name in _STRIKES or "line-through" in styles.get("text-decoration-line", ""))
        apart = is_element and (styles.get("display") in _APART or styles.get("position") in ("absolute", "fixed"))
        if own or (node.parent in found and not apart):
            found.add(node.index)
    return found


def _text(found: dict[str, Any], key: str) -> str:
    """Return a text of an accessible node, such as its name, with single spaces."""
    return " ".join(str(found[key].get("value", "")).split()) if key in found else ""


def _text_value(found: dict[str, Any]) -> str | None:
    value = found["value"].get("value") if "value" in found else None
    return None if value is None else f"{value:g}" if isinstance(value, float | int) else str(value)


def _label(node: DomNode, document: Document, role: str) -> str:
    """Return a name made of the text in or on an element, or of its looks."""
    said = next((flat(node.attributes[key]) for key in ("aria-label", "title", "alt") if node.attributes.get(key)), "")
    if role != "graphics-symbol":
        return said or ("" if _words(node, document) else _looks(node, document))
    shape = _SHAPES[node.name]
    if node.name == "polygon":
        shape = {3: "triangle", 4: "quadrilateral", 5: "pentagon", 6: "hexagon"}.get(_corners(node), "polygon")
    paint = colour_word(node.styles.get("fill", "")) or colour_word(node.styles.get("stroke", ""))
    return " ".join(filter(None, (paint, shape, said or _words(node, document))))


def _is_icon(name: str) -> bool:
    """Return whether a text consists of private characters, which icon fonts draw as pictures and which have no meaning."""
    return all(unicodedata.category(each) == "Co" or each.isspace() for each in name)


def _looks(node: DomNode, document: Document) -> str:
    """Return the background colour of a box in which nothing else is drawn."""
    if any(each.box is not None and each.kind == 1 for each in document.nodes[node.index + 1 : node.end]):
        return ""
    return colour_word(node.styles.get("background-color", ""))


def _words(node: DomNode, document: Document) -> str:
    inside = document.nodes[node.index + 1 : node.end]
    return flat(" ".join(each.text for each in inside if each.kind == 3 and document.nodes[each.parent].name not in _UNSHOWN_TEXT))


def _corners(node: DomNode) -> int:
    return len(node.attributes.get("points", "").replace(",", " ").split()) // 2


def _in_svg(node: DomNode, document: Document) -> bool:
    while node.parent >= 0:
        node = document.nodes[node.parent]
        if node.name == "svg":
            return True
    return False


def replace_surrogates(text: str) -> str:
    """Replace the halves of surrogate pairs in a text: scripts can make such strings, but files and models cannot hold them."""
    try:
        text.encode()  # the quickest way to detect that there are none
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def takes_typing(element: Element) -> bool:
    """Return whether the focus on an element changes the effect of typing, and so belongs to the identity of the state."""
    return element.role in _KEYBOARD


_TITLE = re.compile(r"captcha|cloudflare security challenge|turnstile|arkose|funcaptcha", re.I)
_SOURCE = re.compile(
    r"/recaptcha/(?:api2|enterprise)/anchor|hcaptcha\.com/|challenges\.cloudflare\.com/|arkoselabs\.com/|funcaptcha\.com/", re.I
)
_ANSWERS = ("g-recaptcha-response", "h-captcha-response", "cf-turnstile-response", "fc-token")
"""Names of the fields that hold the answer once a captcha is solved."""


def captcha(node: DomNode, document: Document) -> str:
    """Return the name of a captcha that a frame shows; empty for another frame, one that is not drawn, and one that is solved."""
    source, title = node.attributes.get("src", ""), node.attributes.get("title", "")
    if node.name != "iframe" or node.box is None or not (_TITLE.search(title) or _SOURCE.search(source)):
        return ""
    if "size=invisible" in source:  # a badge: it asks a person nothing
        return ""
    solved = any(each.attributes.get("name") in _ANSWERS and (each.value or each.attributes.get("value")) for each in document.nodes)
    return "" if solved else title if _TITLE.search(title) else "captcha"
