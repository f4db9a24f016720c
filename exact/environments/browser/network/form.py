"""The names of the fields that a request's body holds. Values are never read: they may be secret."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote_plus

MOST_NAMES, LONGEST_NAME = 24, 60
"""Names that are kept of one body, and characters of one name."""
_BODY = 1 << 18
"""Bytes of a body that are read."""
_PARTS = 1000
"""Parts of a body that are read."""
_PART = re.compile(r'^content-disposition:[^\r\n]*?\bname="((?:[^"\\\r\n]|\\.)*)"', re.I | re.M)


def field_names(request: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the fields in the body of a request of CDP, in their order, each once.

    Bodies of forms and JSON objects have names; others have none.
    """
    headers = {str(name).lower(): str(value) for name, value in request.get("headers", {}).items()}
    kind, body = headers.get("content-type", "").lower(), request_body(request)
    names = dict.fromkeys(name[:LONGEST_NAME] for name in _names(kind, body) if name)
    return tuple(names)[:MOST_NAMES]


def _names(kind: str, body: str) -> Iterator[str]:
    if "multipart/form-data" in kind:
        yield from _PART.findall(body)
    elif "json" in kind:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            return
        yield from found if isinstance(found, dict) else ()
    elif "urlencoded" in kind:
        for pair in body.split("&"):
            name, sign, _ = pair.partition("=")
            if sign:
                yield unquote_plus(name)


def request_body(request: Mapping[str, Any]) -> str:
    """Return the first part of the body of a request of CDP as text. Empty if there is none, or CDP does not hand it over."""
    if isinstance(text := request.get("postData"), str):
        return text[:_BODY]
    try:
        parts = [base64.b64decode(each.get("bytes", "")[: 2 * _BODY]) for each in request.get("postDataEntries", ())[:_PARTS]]
    except (binascii.Error, ValueError):
        return ""
    return b"".join(parts)[:_BODY].decode("utf-8", "replace")
