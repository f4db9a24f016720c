"""Observations: the part of a state that an agent may see."""

from __future__ import annotations

import hashlib
import hmac

import msgspec


class Box(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A rectangle in CSS pixels of the viewport; (0, 0) is the top left corner."""

    x: float
    y: float
    width: float
    height: float


class Element(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """One node of the accessibility tree that an action can name or an agent can read."""

    id: str
    """Digits. Stable while the element lives, and equal again after a faithful restore."""
    role: str
    """ARIA role: button, textbox, checkbox, option, StaticText, ..."""
    name: str = ""
    value: str | None = None
    """Current value of a field. None for an element without a value."""
    states: tuple[str, ...] = ()
    """Sorted states: checked, disabled, expanded, focused, pressed, readonly, required, selected, ..."""
    visible: bool = True
    """Whether any part lies in the viewport."""
    box: Box | None = None
    depth: int = 0
    """Nesting level in the tree; the root's children are 0."""


class Observation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The part of a state that an agent may see. Everything in it that came from the environment is untrusted data."""

    text: str
    """The accessibility tree, one element a line, indented: `[4] button "Submit" focused`."""
    fingerprint: str = ""
    """Hex digest of the state's identity (URL, tree, form values), without volatile parts and ids. Empty: that of the text and the URL.
    Behind a dot stands a keyed hash of masked content, if there is any: compare by `same_state` with a fingerprint from another run."""
    volatile: str = ""
    """Hex digest of the same including the volatile parts, if there are any: see environments.restore.verify."""
    url: str = ""
    title: str = ""
    instruction: str = ""
    """The goal, if only the environment knows it; else empty."""
    elements: tuple[Element, ...] = ()
    """Elements in document order."""
    tabs: tuple[str, ...] = ()
    """URLs of the other open tabs, in the order in which they were opened."""
    downloads: tuple[str, ...] = ()
    """Files downloaded since the task began, one line each: `report.csv (120 bytes, sha256 9f86d081884c7d65)`."""
    senders: tuple[str, ...] = ()
    """Ids of elements that send a form which may write: buttons when clicked, fields when Enter is pressed."""
    html: str = ""
    """The page as HTML, shortened, if requested. `exact="12"` is the id of an element."""
    note: str = ""
    """Fact about the page beside its content, such as that it stayed blank. It is not from the page."""
    screenshot: bytes | None = None
    """PNG of the viewport, if requested. Journals store it as a blob."""
    marked: tuple[str, ...] = ()
    """Findings of a configured injection detector, besides the rules of exact/text.py. Set when agents are shown it."""

    def __post_init__(self) -> None:
        """Derive a fingerprint that was not given."""
        if not self.fingerprint:
            digest = hashlib.blake2b(f"{self.url}\0{self.text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
            msgspec.structs.force_setattr(self, "fingerprint", digest)

    def element(self, id: str) -> Element | None:
        """Return the element with that id, or None."""
        return next((element for element in self.elements if element.id == id), None)


_KEY_DIGITS = 8
"""Hex digits behind the dot of a fingerprint that name the key of its hash."""


def without_hash(fingerprint: str) -> str:
    """Return a fingerprint without the keyed hash of masked content."""
    return fingerprint.partition(".")[0]


def keyed_hash(key: bytes, content: str) -> str:
    """Return the end of the fingerprint of a state with masked content: a dot, the name of the key, and the hash of the content."""

    def digest(text: str) -> str:
        return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    return f".{digest('')[:_KEY_DIGITS]}{digest(content)[:32]}"


def same_state(one: str, other: str) -> bool:
    """Return whether two fingerprints are of one state. Their hashes of masked content are compared only if they have one key.

    >>> same_state("9f.0000000a11", "9f.0000000a22"), same_state("9f.0000000a11", "9f.0000000b22")
    (False, True)
    """
    (digest, _, hashed), (wanted, _, hash) = one.partition("."), other.partition(".")
    if hashed and hash and hashed[:_KEY_DIGITS] != hash[:_KEY_DIGITS]:
        return digest == wanted
    return one == other
