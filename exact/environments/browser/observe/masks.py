"""What of a state is volatile: it differs between two looks at one state, and so does not tell states apart.

Never seen by a fingerprint: carets, DOM attributes (MiniWoB's `data-tampered` among them), hidden fields with CSRF tokens: they are not in
the accessibility tree. Masked here: clocks, ages and tokens in addresses; what a user's patterns match; what was learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode, urlsplit

from exact.errors import UsageError
from exact.observation import Element
from exact.task import Task

CLOCK = r"\b\d{1,2}:\d\d:\d\d(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\b)?"
"""Times with seconds. Those without are what users choose among, so they tell states apart."""
AGE = r"(?i:\b(?:\d+|an?) (?:second|sec|minute|min)s? ago\b|\bjust now\b)"
TOKENS = r"(?i)^(?:_|ts|timestamp|nonce|cachebust(?:er)?|(?:.*[_-])?(?:csrf|xsrf)(?:[_-].*)?|csrfmiddlewaretoken|authenticity_token)$"
"""Names of parameters in an address."""
PLACEHOLDER = "\N{HORIZONTAL ELLIPSIS}"
_KNOWN = re.compile(f"{CLOCK}|{AGE}")
_TOKENS = re.compile(TOKENS)
_CHOSEN = re.compile("button|link|option|radio|checkbox|switch|tab|treeitem|(grid)?cell|menuitem(radio|checkbox)?")
"""Roles whose names are chosen among."""

Part = list[object]
"""What identifies one element: depth, role, name, value, states, visible, place."""
FIELDS = ("depth", "role", "name", "value", "states", "visible", "place")
GONE = "gone"
"""In place of a field: the element is there at one look and not at the other."""


class Masks:
    """The volatile parts of one kind of pages. What is learned is shared by all environments that have the same Masks."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """`patterns`: regular expressions for names, values and addresses. Raises UsageError for one that is none."""
        self._patterns = [_compiled(pattern) for pattern in patterns]
        self._learned: dict[str, set[str]] = {}
        self._begun: set[str] = set()

    def of(self, task: Task) -> Masks:
        """With those that the task's metadata name: `masks`, one regular expression a line."""
        own = [line for line in str(task.metadata.get("masks") or "").splitlines() if line.strip()]
        if not own:
            return self
        made = Masks(own)
        made._patterns, made._learned, made._begun = self._patterns + made._patterns, self._learned, self._begun
        return made

    def begin(self, task: Task) -> bool:
        """Whether nothing was learned at the start of this task yet; from now on it was."""
        new = task.id not in self._begun
        self._begun.add(task.id)
        return new

    @property
    def learned(self) -> Mapping[str, set[str]]:
        """Fields of elements, by where these are in the document."""
        return self._learned

    def learn(self, one: Mapping[str, Part], other: Mapping[str, Part]) -> int:
        """Two looks at one state: what differs is volatile from now on. Each maps where an element is to its part. How many differ."""
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
        """A URL without its volatile parts."""
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        if any(_TOKENS.match(name) for name, _ in pairs):
            query = urlencode([(name, PLACEHOLDER if _TOKENS.match(name) else value) for name, value in pairs])
            url = parts._replace(query=query).geturl()
        return self._own(url)

    def parts(self, elements: Sequence[Element], parts: Iterable[Part], places: Sequence[str]) -> Iterator[Part]:
        """The parts of elements without what is volatile in them. `places`: where each is in its document; may be empty."""
        timer: int | None = None
        for index, (element, part) in enumerate(zip(elements, parts, strict=True)):
            if timer is not None and element.depth <= timer:
                timer = None
            if timer is None and element.role == "timer":
                timer = element.depth
            volatile = self._learned.get(places[index], ()) if places and self._learned else ()
            if GONE not in volatile:
                yield self._part(element, part, volatile, ticking=timer is not None)

    def _part(self, element: Element, part: Part, volatile: Iterable[str], *, ticking: bool) -> Part:
        name, value = self._own(element.name), None if element.value is None else self._own(element.value)
        if ticking:
            name = PLACEHOLDER
        elif element.value is None and not _CHOSEN.fullmatch(element.role):
            name = _KNOWN.sub(PLACEHOLDER, name)
        elif value is not None and "disabled" in element.states:  # nobody typed it
            value = _KNOWN.sub(PLACEHOLDER, value)
        masked: Part = [*part[:2], name, value, *part[4:]]
        for field in volatile:
            masked[FIELDS.index(field)] = PLACEHOLDER
        return masked

    def _own(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.sub(PLACEHOLDER, text)
        return text


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UsageError(f"mask {pattern!r} is no regular expression: {error}") from error
