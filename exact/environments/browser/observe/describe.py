"""Observations as text, and the fingerprints of states.

Masks for the volatile parts of a state, which differ between two observations of it and so cannot identify it.

Carets, DOM attributes (such as MiniWoB's `data-tampered`) and hidden fields with CSRF tokens are in no fingerprint, because they are not in
the accessibility tree. Masked here are clocks, ages, the time that it took to make a page, and tokens in addresses; matches of a user's
patterns; and learned parts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import secrets
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from msgspec import structs

from exact.environments.browser.observe.dom import Document, ScrollPlace
from exact.environments.browser.observe.tree import takes_typing
from exact.environments.browser.page.cdp import no_collection
from exact.observation import Box, Element, Observation, keyed_hash
from exact.origins import split_url
from exact.task import Task
from exact.untrusted import compiled

_PICTURES = ("Canvas", "image", "Video", "graphics-symbol")
_DRAWN = ("graphics-symbol", "Canvas")
"""Roles of which little but the box is known: it is written out, and identifies the element."""
_TYPED = ("textbox", "searchbox", "spinbutton", "combobox")
"""Roles of the fields that hold typed text."""
_BULLET = "\N{BULLET}"
"""Character that a password is shown as."""
_DOTS = re.compile(r"\s*(?:[\u2022\u25cf\u2219\u26ab\u2b24*]\s*)+")
"""Text that consists of the characters that stand for masked ones."""
_TYPING = re.compile(r" (?:type|press|fill) ")
"""A step that types."""
_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Line ends that JSON leaves unescaped, written out."""
_MOST_HELD = 80
"""Maximum characters of a field's content that a step reports."""
_MOST_TOLD = 6
"""The most elements that are named of those that came, and of those that went."""
_MOVED_PIXELS, _MOST_MOVED = 3, 5
"""CSS pixels from which an element counts as moved, and the most elements that are named."""


def elements_text(elements: Iterable[Element]) -> str:
    """Return elements as text, one a line, indented by depth: `[4] button "Submit" focused`.

    Names and values are JSON strings, so text of the page stays on its line.
    """
    return "\n".join(_line(element) for element in elements)


def _line(element: Element) -> str:
    parts = [f"{'  ' * element.depth}[{element.id}] {element.role}"]
    if element.name:
        parts.append(_quoted(element.name))
    if element.value is not None:
        parts.append(f"value={_quoted(element.value)}")
    parts.extend(element.states)
    if element.role in _DRAWN and element.box:
        parts.append(_geometry(element))
    if not element.visible:
        parts.append("(outside the view)")
    return " ".join(parts)


def _quoted(text: str) -> str:
    """Return a text as a JSON string on one line, whichever characters end lines."""
    quoted = encode_basestring(text)
    return quoted if quoted.isascii() else quoted.translate(_LINE_ENDS)


class Digests(NamedTuple):
    """Hex SHA-256 digests that identify a state."""

    fingerprint: str
    """The digest of the parts that are not volatile."""
    volatile: str
    """The digest of everything, if something is volatile; otherwise empty."""


@no_collection()
def fingerprint(
    url: str,
    elements: Sequence[Element],
    tabs: Sequence[str] = (),
    masks: Masks | None = None,
    paths: Sequence[str] = (),
    scrolled: Sequence[ScrollPlace] = (),
    hidden: str = "",
    title: str = "",
) -> Digests:
    """Return the digests of a state.

    They cover URL, other tabs, how far it is scrolled, and of each element depth, role, name, value, states and whether it is in view.

    Left out are ids and boxes (except of drawn shapes, which have nothing else), DOM attributes, the caret, and the focus on an element
    that typing does not change (else every click on a button would be a new state).
    `paths`: the path of each element in its document, for masks that were learned. `hidden`: content that the page masks. `title`: the
    page's title if a script has changed it.
    """
    masks = masks or Masks()
    found = [identity(element) for element in elements]
    far: list[object] = [list(place) for place in scrolled]
    retitled: list[object] = [{"title": masks.title(title)}] if title else []
    whole: list[object] = [url, list(tabs), *far, *found, *retitled]
    shown: list[object] = [masks.address(url), [masks.address(tab) for tab in tabs]]
    masked: list[object] = [*shown, *far, *masks.mask(elements, found, paths), *retitled]
    return Digests(_digest(masked) + (keyed_hash(masks.key, hidden) if hidden else ""), "" if whole == masked else _digest(whole))


class HiddenState(NamedTuple):
    """The part of a state that its text does not show: content that the page masks, and titles that scripts changed.

    The value of a password field can be read. A pad that draws a dot for each key holds the rest in its scripts: what is typed there is
    known by the steps that drew the dots.
    """

    passwords: tuple[str, ...] = ()
    """Values of the fields for passwords, in document order."""
    url: str = ""
    dots: int = 0
    """Number of dots."""
    steps: str = ""
    """Keyed hash of the steps that drew the dots; empty if there are none, or if the page drew them by itself."""

    titles: Mapping[int, tuple[int, str]] = MappingProxyType({})
    """The present document of each tab, by the numbers of both, with the title that it had at first."""

    def is_retitled(self, tab: int, title: str, masks: Masks) -> bool:
        """Return whether the title of a tab's page is another one than at first, volatile parts apart."""
        return masks.title(title) != masks.title(self.titles[tab][1])

    def with_title(self, tab: int, document: int, title: str) -> HiddenState:
        """Return this state once a document of a tab was observed, by the numbers of both."""
        if self.titles.get(tab, (-1, ""))[0] == document:
            return self
        return self._replace(titles={**self.titles, tab: (document, title)})

    def text(self, mask: Callable[[str], str]) -> str:
        """Return the content as one text, with the names that `mask` puts in place of known secrets; empty if nothing is masked."""
        return json.dumps([*map(mask, self.passwords), self.steps]) if any(self.passwords) or self.steps else ""

    def after(self, step: str, url: str, elements: Iterable[Element], documents: Iterable[Document], key: bytes) -> HiddenState:
        """Return the masked content of the next observation.

        `step`: the action that led to it and the state before; empty if none did. Dots that come one at a time, or by typing, and do not
        come with another page, are those of a pad.
        """
        found = tuple(
            node.value
            for document in documents
            for node in document.nodes
            if node.name == "input" and node.attributes.get("type", "").lower() == "password"
        )
        texts = (each.name if each.value is None else each.value for each in elements)
        dots = max(0, sum(len("".join(text.split())) for text in texts if _DOTS.fullmatch(text)) - sum(map(len, found)))
        steps = self.steps if dots else ""
        if step and dots and dots != self.dots:
            typed = abs(dots - self.dots) == 1 or _TYPING.search(step)
            steps = keyed_hash(key, f"{self.steps} {step}") if typed and url == self.url else ""
        return self._replace(passwords=found, url=url, dots=dots, steps=steps)


def moved_elements(before: Sequence[Element], after: Sequence[Element]) -> str:
    """Name the elements that moved, with CSS pixels to the right and down, which a fingerprint leaves out.

    Empty if all elements moved alike, as by scrolling.
    """
    boxes = {element.id: element.box for element in before}
    shifts = [
        (f"[{element.id}]", round(element.box.x - was.x), round(element.box.y - was.y))
        for element in after
        if element.box and (was := boxes.get(element.id))
    ]
    if len({shift[1:] for shift in shifts}) < 2:
        return ""
    found = [f"{id} moved by {x},{y}" for id, x, y in shifts if max(abs(x), abs(y)) >= _MOVED_PIXELS]
    return ", ".join(found[:_MOST_MOVED])


def changed_elements(before: Sequence[Element], after: Sequence[Element]) -> str:
    """Return in words which elements have come and gone between two observations."""
    one, other = (Counter(_line(structs.replace(each, id="", depth=0, visible=True))[3:] for each in seen) for seen in (before, after))
    found = (("new", other - one), ("gone", one - other))
    parts = [(word, [line[:_MOST_HELD] for line in lines]) for word, lines in found if lines]
    told = [f"{word}: {', '.join(lines[:_MOST_TOLD])}{' and more' if len(lines) > _MOST_TOLD else ''}" for word, lines in parts]
    return f"the page changed by itself; {'; '.join(told)}" if told else "the page changed by itself"


def restless_boxes(before: Sequence[Element], after: Sequence[Element], targets: Container[str]) -> Iterator[Box]:
    """Yield the boxes of elements whose looks do not distinguish states: those in the text or masked in it, carets, and targets of actions.

    `targets`: the ids of elements that actions pointed at. Pictures are not among them: their content counts.
    """
    known, now = ([json.dumps(identity(each)) for each in elements] for elements in (before, after))
    for elements, own, others in ((before, known, set(now)), (after, now, set(known))):
        for element, what in zip(elements, own, strict=True):
            caret = "focused" in element.states and takes_typing(element)
            pointed = element.id in targets and element.role not in _PICTURES
            if element.box and (caret or pointed or what not in others):
                yield element.box


def held_text(seen: Observation, id: str, typed: str) -> str:
    """Describe a field's content if masks, limits or scripts have changed the typed text. Empty if not, or if it is unknown."""
    field = seen.element(id)
    if field is None or field.role not in _TYPED or (field.value and not field.value.strip(_BULLET)):
        return ""
    holds, wanted = " ".join((field.value or "").split()), " ".join(typed.split())
    if holds == wanted or (field.role == "spinbutton" and _number(holds) == _number(wanted) is not None):
        return ""
    content = json.dumps(holds[:_MOST_HELD], ensure_ascii=False) if holds else "nothing"
    return f"[{id}] holds {content} now, not {json.dumps(wanted[:_MOST_HELD], ensure_ascii=False)}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def identity(element: Element) -> Identity:
    """Return the identity of an element, in the order of masks.FIELDS."""
    states = [state for state in element.states if state != "focused" or takes_typing(element)] if element.states else []
    place = _geometry(element) if element.role in _DRAWN and element.box else ""
    return [element.depth, element.role, element.name, element.value, states, element.visible, place]


def _digest(parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def _geometry(element: Element) -> str:
    box = element.box
    return f"{box.width:.0f}x{box.height:.0f} at {box.x:.0f},{box.y:.0f}" if box else ""


CLOCK = r"\b\d{1,2}:\d\d:\d\d(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\b)?"
"""Times with seconds. Users choose among times without seconds, so those identify states."""
AGE = r"(?i:\b(?:\d+|an?) (?:second|sec|minute|min)s? ago\b|\bjust now\b)"
DURATION = r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?)\b|(?i:\b(?:in|within|took) \d+\.\d+\s?(?:s|secs?|seconds?)\b)"
"""Generation times that pages state: milliseconds, and fractions of seconds."""
TOKENS = r"(?i)^(?:_|ts|timestamp|nonce|cachebust(?:er)?|(?:.*[_-])?(?:csrf|xsrf)(?:[_-].*)?|csrfmiddlewaretoken|authenticity_token)$"
"""Names of volatile parameters in an address."""
PLACEHOLDER = "\N{HORIZONTAL ELLIPSIS}"
_KNOWN = re.compile(f"{CLOCK}|{AGE}|{DURATION}")
_TOKENS = re.compile(TOKENS)
_COUNT = re.compile(r"^\s*[(\[]\d+\+?[)\]]\s*")
"""Number of new messages at the beginning of a title."""
_CHOSEN = re.compile("button|link|option|radio|checkbox|switch|tab|treeitem|(grid)?cell|menuitem(radio|checkbox)?")
"""Roles that users choose by name."""


@functools.lru_cache(256)
def _is_chosen(role: str) -> bool:
    return bool(_CHOSEN.fullmatch(role))


Identity = list[object]
"""Identity of an element: the values of FIELDS, in that order."""
FIELDS = ("depth", "role", "name", "value", "states", "visible", "place")
GONE = "gone"
"""Volatile field of an element that is present in one observation and absent in another."""


class Masks:
    """The masks for pages of one kind. The learned masks are shared by all environments that have the same Masks."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Compile the masks. `patterns`: regular expressions for names, values and addresses. Raises UsageError for an invalid one."""
        self._patterns = [compiled(pattern, "browser.masks") for pattern in patterns]
        self._learned: dict[str, set[str]] = {}
        self._begun: set[str] = set()
        self.key = secrets.token_bytes(32)
        """Key of the hashes of masked content: one for all environments that share the masks, stored nowhere."""

    def for_task(self, task: Task) -> Masks:
        """Return these masks with those of the task's metadata: `masks`, one regular expression a line."""
        own = [line for line in str(task.metadata.get("masks") or "").splitlines() if line.strip()]
        if not own:
            return self
        made = Masks(own)
        made._patterns, made._learned, made._begun, made.key = self._patterns + made._patterns, self._learned, self._begun, self.key
        return made

    def begin_learning(self, task: Task) -> bool:
        """Return True on the first call for a task: masks have to be learned at its start."""
        new = task.id not in self._begun
        self._begun.add(task.id)
        return new

    @property
    def learned(self) -> Mapping[str, set[str]]:
        """The volatile fields of elements, by their paths in the document."""
        return self._learned

    def learn(self, one: Mapping[str, Identity], other: Mapping[str, Identity]) -> int:
        """Mask the differences between two observations of one state. Return the number of elements that differ.

        Each observation maps the paths of elements to their identities.
        """
        found = 0
        for where in one.keys() | other.keys():
            if where in one and where in other:
                differ = {name for name, a, b in zip(FIELDS, one[where], other[where], strict=True) if a != b}
            else:
                differ = {GONE}
            if differ:
                self._learned.setdefault(where, set()).update(differ)
                found += 1
        return found

    def address(self, url: str) -> str:
        """Return a URL without its volatile parts."""
        parts = split_url(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        if any(_TOKENS.match(name) for name, _ in pairs):
            query = urlencode([(name, PLACEHOLDER if _TOKENS.match(name) else value) for name, value in pairs])
            url = parts._replace(query=query).geturl()
        return self._apply(url)

    def title(self, title: str) -> str:
        """Return the title of a page without its volatile parts, such as a number of new messages before it."""
        return self._apply(_KNOWN.sub(PLACEHOLDER, _COUNT.sub("", title)))

    def mask(self, elements: Sequence[Element], identities: Iterable[Identity], paths: Sequence[str]) -> Iterator[Identity]:
        """Yield the identities of elements without their volatile parts. `paths`: their paths in the document; may be empty."""
        timer: int | None = None
        for index, (element, identity) in enumerate(zip(elements, identities, strict=True)):
            if timer is not None and element.depth <= timer:
                timer = None
            if timer is None and element.role == "timer":
                timer = element.depth
            volatile = self._learned.get(paths[index], ()) if paths and self._learned else ()
            if GONE not in volatile:
                yield self._masked(element, identity, volatile, ticking=timer is not None)

    def _masked(self, element: Element, identity: Identity, volatile: Iterable[str], *, ticking: bool) -> Identity:
        name, value = self._apply(element.name), None if element.value is None else self._apply(element.value)
        if ticking:
            name = PLACEHOLDER
        elif element.value is None and not _is_chosen(element.role):
            name = _KNOWN.sub(PLACEHOLDER, name)
        elif value is not None and "disabled" in element.states:  # no user typed it
            value = _KNOWN.sub(PLACEHOLDER, value)
        if not volatile and (name, value) == (element.name, element.value):
            return identity
        masked: Identity = [*identity[:2], name, value, *identity[4:]]
        for field in volatile:
            masked[FIELDS.index(field)] = PLACEHOLDER
        return masked

    def _apply(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.replaced(PLACEHOLDER, text)
        return text
