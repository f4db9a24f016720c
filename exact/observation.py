"""What an agent may see of a state."""

from __future__ import annotations

import msgspec


class Box(msgspec.Struct, frozen=True, array_like=True):
    """A rectangle in CSS pixels of the viewport; (0, 0) is the top left corner."""

    x: float
    y: float
    width: float
    height: float


class Element(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One node of the accessibility tree that can be named in an action or read."""

    id: str
    """Digits; the same for as long as the element lives, and the same again after a faithful restore."""
    role: str
    """ARIA role: button, textbox, checkbox, option, StaticText, ..."""
    name: str = ""
    value: str | None = None
    """Current value of a field; None where the element has none."""
    states: tuple[str, ...] = ()
    """Sorted: checked, disabled, expanded, focused, pressed, readonly, required, selected, ..."""
    visible: bool = True
    """Whether any part lies in the viewport."""
    box: Box | None = None
    depth: int = 0
    """Nesting level in the tree; the root's children are 0."""


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent may see of a state. Everything in it that came from the environment is untrusted data."""

    text: str
    """The accessibility tree, one element a line, indented: `[4] button "Submit" focused`."""
    fingerprint: str
    """Hex digest of what identifies the state (URL, tree, form values), with volatile parts and ids left out."""
    volatile: str = ""
    """Hex digest of all of that with the volatile parts, where there are any: see environments.verify."""
    url: str = ""
    title: str = ""
    instruction: str = ""
    """The goal, where only the environment knows it; else empty."""
    elements: tuple[Element, ...] = ()
    """In document order."""
    tabs: tuple[str, ...] = ()
    """URLs of the other open tabs, in the order in which they were opened."""
    downloads: tuple[str, ...] = ()
    """What was downloaded since the task began, one line a file: `report.csv (120 bytes, sha256 9f86d081884c7d65)`."""
    senders: tuple[str, ...] = ()
    """Ids of elements that send a form which may write: buttons that do when they are clicked, fields in which Enter does."""
    html: str = ""
    """The page as HTML, shortened, where asked for; `exact="12"` is the id of an element."""
    screenshot: bytes | None = None
    """PNG of the viewport, where asked for. Journals keep it as a blob beside the rest."""

    def element(self, id: str) -> Element | None:
        """The element of that id, or None."""
        return next((element for element in self.elements if element.id == id), None)
