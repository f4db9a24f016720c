"""Masks for the volatile parts of a state, which differ between two observations of it and so cannot identify it.

Carets, DOM attributes (such as MiniWoB's `data-tampered`) and hidden fields with CSRF tokens are in no fingerprint, because they are not
in the accessibility tree. Masked here are clocks, ages, the time that it took to make a page, and tokens in addresses; what a user's
patterns match; and what was learned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import parse_qsl, urlencode

from exact.observation import Element
from exact.origins import split_url
from exact.task import Task
from exact.untrusted import compiled

CLOCK = r"\b\d{1,2}:\d\d:\d\d(?:\.\d+)?(?:\s?[AaPp]\.?[Mm]\b)?"
"""Times with seconds. Users choose among times without seconds, so those identify states."""
AGE = r"(?i:\b(?:\d+|an?) (?:second|sec|minute|min)s? ago\b|\bjust now\b)"
DURATION = r"\b\d+(?:\.\d+)?\s?(?:ms|milliseconds?)\b|(?i:\b(?:in|within|took) \d+\.\d+\s?(?:s|secs?|seconds?)\b)"
"""Times that pages say it took to make them: milliseconds, and fractions of seconds."""
TOKENS = r"(?i)^(?:_|ts|timestamp|nonce|cachebust(?:er)?|(?:.*[_-])?(?:csrf|xsrf)(?:[_-].*)?|csrfmiddlewaretoken|authenticity_token)$"
"""Names of volatile parameters in an address."""
PLACEHOLDER = "\N{HORIZONTAL ELLIPSIS}"
_KNOWN = re.compile(f"{CLOCK}|{AGE}|{DURATION}")
_TOKENS = re.compile(TOKENS)
_CHOSEN = re.compile("button|link|option|radio|checkbox|switch|tab|treeitem|(grid)?cell|menuitem(radio|checkbox)?")
"""Roles that users choose by name."""

Identity = list[object]
"""What identifies an element: the values of FIELDS, in that order."""
FIELDS = ("depth", "role", "name", "value", "states", "visible", "place")
GONE = "gone"
"""Volatile field of an element that is present in one observation and absent in another."""


class Masks:
    """The masks for pages of one kind. What is learned is shared by all environments that have the same Masks."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        """Compile the masks. `patterns`: regular expressions for names, values and addresses. Raises UsageError for an invalid one."""
        self._patterns = [compiled(pattern, "browser.masks") for pattern in patterns]
        self._learned: dict[str, set[str]] = {}
        self._begun: set[str] = set()

    def for_task(self, task: Task) -> Masks:
        """Return these masks with those of the task's metadata: `masks`, one regular expression a line."""
        own = [line for line in str(task.metadata.get("masks") or "").splitlines() if line.strip()]
        if not own:
            return self
        made = Masks(own)
        made._patterns, made._learned, made._begun = self._patterns + made._patterns, self._learned, self._begun
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
        """Mask what differs between two observations of one state. Return the number of elements that differ.

        Each observation maps the paths of elements to what identifies them.
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

    def mask(self, elements: Sequence[Element], identities: Iterable[Identity], paths: Sequence[str]) -> Iterator[Identity]:
        """Yield the identities of elements without what is volatile. `paths`: their paths in the document; may be empty."""
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
        elif element.value is None and not _CHOSEN.fullmatch(element.role):
            name = _KNOWN.sub(PLACEHOLDER, name)
        elif value is not None and "disabled" in element.states:  # no user typed it
            value = _KNOWN.sub(PLACEHOLDER, value)
        masked: Identity = [*identity[:2], name, value, *identity[4:]]
        for field in volatile:
            masked[FIELDS.index(field)] = PLACEHOLDER
        return masked

    def _apply(self, text: str) -> str:
        for pattern in self._patterns:
            text = pattern.replaced(PLACEHOLDER, text)
        return text
