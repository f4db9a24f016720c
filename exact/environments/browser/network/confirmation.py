"""Writes that wait for a person's yes before they are sent, each bound to the exact request."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from urllib.parse import parse_qsl

from exact.environments.base import PersonQuestion

MOST_FIELDS, LONGEST_VALUE = 40, 200
"""Limits of what a person sees: fields of one request, and characters of one value."""
_BY_ITSELF = "a page sends it by itself, which no person confirms"
_SECRET = re.compile(r"pass(?:word|wd|code|phrase)?|pwd|secret|token|csrf|nonce|api.?key|card.?n|cvv|cvc|iban|\bpin\b|otp|session", re.I)
"""Names of fields whose values are not shown."""
_PART = re.compile(
    r'^content-disposition:[^\r\n]*?\bname="([^"\r\n]*)"([^\r\n]*)\r?\n(?:[^\r\n]+\r?\n)*\r?\n(.*?)(?=\r?\n--)', re.I | re.M | re.S
)
Ask = Callable[[PersonQuestion], Awaitable[str]]
"""Asks a person whether a request may be sent. Returns the reason if it may not; empty if it may."""


class Confirmations:
    """The writes of one environment that wait for a yes. If no person is to be asked, every write is sent."""

    def __init__(
        self, ask: Ask | None = None, suspended: Callable[[], AbstractContextManager[None]] = nullcontext, *, spares: bool = False
    ) -> None:
        """Make it.

        `ask` asks a person; None if writes need no yes. `suspended` suspends the time limits of the page meanwhile. `spares`: whether what
        a page sends by itself is sent without a yes.
        """
        self.ask, self._suspended, self._spares = ask, suspended, spares
        self._held = 0
        self._released = asyncio.Event()
        self._released.set()
        self._refused: dict[str, str] = {}
        """Reasons of the requests that were refused since the last action began, by digest: a page may try again."""

    def begin_action(self) -> None:
        """Forget earlier refusals: the agent acts again."""
        self._refused.clear()

    @property
    def declined(self) -> str:
        """The reason for which a request was refused since the last action began; empty if none was."""
        return next(iter(self._refused.values()), "")

    @property
    def waiting(self) -> bool:
        """Whether a request is held: it waits for a person, or for its turn."""
        return self._held > 0

    async def answered(self) -> None:
        """Wait until no request is held."""
        await self._released.wait()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no page or server count as late while a request is held."""
        self._held += 1
        self._released.clear()
        try:
            with self._suspended():
                yield
        finally:
            self._held -= 1
            if not self._held:
                self._released.set()

    async def refusal(self, method: str, url: str, body: str, mask: Callable[[str], str], *, by_itself: bool) -> str:
        """Return the reason if a write is not sent; empty if it is. `by_itself`: no action caused it."""
        if self.ask is None:
            return ""
        if by_itself:
            return "" if self._spares else _BY_ITSELF
        digest = hashlib.sha256("\0".join((method, url, body)).encode()).hexdigest()
        if digest in self._refused:
            return self._refused[digest]
        question = PersonQuestion(kind="write", text="", method=method, url=mask(url), fields=shown_fields(body, mask), digest=digest)
        with self.held():
            why = await self.ask(question)
        if why:
            self._refused[digest] = why
        return why


def shown_fields(body: str, mask: Callable[[str], str]) -> dict[str, str]:
    """Return the fields of a body as a person sees them: secrets masked, long values cut. A body without names is one field."""
    found = dict[str, str]()
    for name, value in _fields(body):
        shown = "(not shown)" if _SECRET.search(name) and value else mask(value)
        found[mask(name)[:LONGEST_VALUE]] = shown if len(shown) <= LONGEST_VALUE else f"{shown[:LONGEST_VALUE]}..."
        if len(found) == MOST_FIELDS:
            break
    return found


def _fields(body: str) -> Iterator[tuple[str, str]]:
    if not body:
        return
    if body[:1] in "{[" and (data := _parsed(body)) is not None:
        yield from _named("", data)
    elif parts := _PART.findall(body):
        for name, more, value in parts:
            file = re.search(r'filename="([^"]*)"', more)
            yield name, f"file {file[1]}" if file else value
    elif "=" in body and "\n" not in body:
        yield from parse_qsl(body, keep_blank_values=True)
    else:
        yield "body", body


def _named(under: str, data: object) -> Iterator[tuple[str, str]]:
    """Yield the fields of plain data, nested ones after the names of their parents."""
    if isinstance(data, dict):
        for name, value in data.items():
            yield from _named(f"{under}.{name}" if under else str(name), value)
    elif isinstance(data, list) and data:
        for number, value in enumerate(data):
            yield from _named(f"{under}[{number}]", value)
    else:
        yield under or "body", data if isinstance(data, str) else json.dumps(data)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
