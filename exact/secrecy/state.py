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
_NAMED = re.compile(r"(?i)pass|pwd|secret|token|auth|session|\bsid\b|jwt|csrf|xsrf|api_?-?key|credential")
"""Names whose values are secret although they are shorter."""


def state_secrets(state: Mapping[str, Any]) -> Iterator[Secret]:
    """Yield the secrets of cookies and storage in the form of Playwright's `storage_state`. What has another form is left out."""
    for cookie in _mappings(state.get("cookies")):
        yield from _of("cookie", str(cookie.get("name", "")), cookie.get("value"), _COOKIE)
    for each in _mappings(state.get("origins")):
        for entry in _mappings(each.get("localStorage")):
            name, value = str(entry.get("name", "")), entry.get("value")
            yield from _of("storage", name, value, _STORED)
            if isinstance(value, str) and value[:1] in ("{", "["):
                try:
                    yield from _inside(name, json.loads(value))
                except (ValueError, RecursionError):
                    continue


def looks_random(text: str) -> bool:
    """Return whether a text is one word with digits and letters, as identifiers of sessions are, and no word of a language."""
    return not re.search(r"\s", text) and bool(re.search(r"\d", text)) and bool(re.search(r"[A-Za-z]", text))


def _of(kind: str, name: str, value: object, least: int) -> Iterator[Secret]:
    if not isinstance(value, str):
        return
    named = bool(_NAMED.search(name)) and len(value) >= _COOKIE
    if named or (len(value) >= least and looks_random(value) and value[:1] not in ("{", "[")):
        yield from (Secret(f"{kind} {name}", each) for each in dict.fromkeys((value, unquote(value))))


def _inside(name: str, value: object) -> Iterator[Secret]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of("storage", f"{name}.{key}", each, _STORED)
            yield from _inside(f"{name}.{key}", each)
    elif isinstance(value, list):
        for each in value:
            yield from _inside(name, each)


def _mappings(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))
