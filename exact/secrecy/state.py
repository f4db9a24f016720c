"""The secrets of a saved log-in: values of cookies and of local storage that are long enough to identify a session."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from exact.secrecy.values import Secret

_COOKIE, _STORED = 8, 16
"""Least number of characters of a value."""
_CREDENTIAL = re.compile(r"(?i)pass|pwd|secret|token|\bsid\b|jwt|csrf|xsrf|api_?-?key|credential")
"""Names whose values are secret although they are shorter."""
_SESSION = re.compile(r"(?i)auth(?!or(?!i))|session")
"""Names whose values are secret too, unless they are plain words."""
_PERSON = re.compile(r"(?i)user|name|author|owner|e?-?mail")
_WORDS = re.compile(r"[^\W\d_]+\d{0,4}(?:[\s.,'@+_-]+[^\W\d_]+\d{0,4})*")
"""Matches a person's name, user name or address of mail."""
_PHRASE = re.compile(r"(?:[^\W\d_]+\d{0,4}|\d{1,4})[.,!?]?(?:\s+(?:[^\W\d_]+\d{0,4}|\d{1,4})[.,!?]?)+")
"""Matches several plain words."""


def state_secrets(state: Mapping[str, Any]) -> Iterator[Secret]:
    """Yield the secrets of cookies and storage in the form of Playwright's `storage_state`. Entries of another form are left out."""
    for cookie in _mappings(state.get("cookies")):
        name, value = str(cookie.get("name", "")), cookie.get("value")
        yield from _of("cookie", name, value, _COOKIE)
        yield from _inside("cookie", name, unquote(value) if isinstance(value, str) else "")
    for each in _mappings(state.get("origins")):
        for entry in _mappings(each.get("localStorage")):
            name, value = str(entry.get("name", "")), entry.get("value")
            yield from _of("storage", name, value, _STORED)
            yield from _inside("storage", name, value)


def looks_random(text: str) -> bool:
    """Return whether a text is one word with digits and letters, as identifiers of sessions are, and no word of a language."""
    return not re.search(r"\s", text) and bool(re.search(r"\d", text)) and bool(re.search(r"[A-Za-z]", text))


def _of(kind: str, name: str, value: object, least: int) -> Iterator[Secret]:
    if not isinstance(value, str):
        return
    text = unquote(value)
    is_credential = bool(_CREDENTIAL.search(name))
    if not is_credential and (_PHRASE.fullmatch(text) or (_PERSON.search(name) and _WORDS.fullmatch(text))):
        return
    is_named = len(value) >= _COOKIE and (is_credential or bool(_SESSION.search(name)))
    if is_named or (len(value) >= least and looks_random(value) and text[:1] not in ("{", "[")):
        yield Secret(f"{kind} {name}", text, presumed=not is_named)
        if value != text:
            yield Secret(f"{kind} {name} as it is sent", value, presumed=not is_named)


def _inside(kind: str, name: str, value: object) -> Iterator[Secret]:
    """Yield the secrets in JSON, given as a text."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return
    try:
        yield from _below(kind, name, json.loads(value))
    except (ValueError, RecursionError):
        return


def _below(kind: str, name: str, value: object) -> Iterator[Secret]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of(kind, f"{name}.{key}", each, _STORED)
            yield from _below(kind, f"{name}.{key}", each)
    elif isinstance(value, list):
        for each in value:
            yield from _below(kind, name, each)


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))
