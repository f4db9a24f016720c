"""Observations: the part of a state that an agent may see."""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

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
    results: int = 0
    """Number of lines at the beginning of the text that are results of tools. They stay if the text is shortened or not shown."""
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


LABEL_NAME = 60
"""Most characters of a name in an action's label. Elements whose names begin alike for as long are told apart by their places."""
NEAR_TEXT = 30
"""Most characters of the text beside an element in its place."""
_REACH = 8
"""Elements before one among which the text beside it is looked for."""
_TEXTS = frozenset(
    ["StaticText", "heading", "LabelText", "Legend", "term", "rowheader", "columnheader", "cell", "gridcell", "listitem", "caption"]
)
"""Roles of elements whose names are text beside others."""
_TEXT_AFTER = frozenset(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"])
"""Roles of elements whose text stands behind them."""
_PLAIN = str.maketrans({"'": "’", '"': "”", "\\": "/", "[": "(", "]": ")"})


def places(elements: Sequence[Element], ids: Iterable[str] | None = None) -> Mapping[str, str]:
    """Return the places of elements that role and name do not tell from others, by id: `under "Password"`, `2 of 3 under "Password"`.

    A place is the nearest text, with a number if that is beside several alike. An element without a name has one too if there is text
    beside it. No two elements have role, name and place in common. `ids`: only those of these elements. Text of the page in a place is
    data between quotation marks, and has no others, no backslashes and no brackets.
    """
    chosen = None if ids is None else set(ids)
    roles = None if chosen is None else {each.role for each in elements if each.id in chosen}
    kinds = {at: (each.role, _cut(each.name)) for at, each in enumerate(elements) if roles is None or each.role in roles}
    counts = Counter(kinds.values())
    wanted = None if chosen is None else {kind for at, kind in kinds.items() if elements[at].id in chosen}
    told = [at for at, kind in kinds.items() if (counts[kind] > 1 or not kind[1]) and (wanted is None or kind in wanted)]
    near = {at: _near(elements, at) for at in told}
    alike, number, found = Counter((kinds[at], near[at]) for at in told), Counter[object](), dict[str, str]()
    for at in told:
        key = (kinds[at], near[at])
        number[key] += 1
        order = f"{number[key]} of {alike[key]}" if alike[key] > 1 else ""
        found[elements[at].id] = " ".join(filter(None, (order, near[at])))
    return {id: place for id, place in found.items() if place}


def _near(elements: Sequence[Element], at: int) -> str:
    """Return the text beside an element, such as `under "Password"`; empty if there is none."""
    role, name = elements[at].role, elements[at].name
    if role in _TEXTS:
        return ""
    after = elements[at + 1] if at + 1 < len(elements) else None
    if role in _TEXT_AFTER and after is not None and after.role in _TEXTS and _cut(after.name):
        return f'before "{_beside(after.name)}"'
    before = (elements[other] for other in range(at - 1, max(-1, at - 1 - _REACH), -1))
    text = next((each.name for each in before if each.role in _TEXTS and _cut(each.name) and each.name != name), "")
    return f'under "{_beside(text)}"' if text else ""


def _beside(text: str) -> str:
    line = " ".join("".join(each if each.isprintable() else " " for each in text.translate(_PLAIN)).split())
    return line if len(line) <= NEAR_TEXT else f"{line[: NEAR_TEXT - 1].rstrip()}…"


def _cut(name: str) -> str:
    name = name[: 4 * LABEL_NAME]
    if not name.isprintable():
        name = "".join(each if each.isprintable() else " " for each in name)
    return " ".join(name.split())[: LABEL_NAME - 1]
