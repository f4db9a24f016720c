"""Lenient reading of servers' JSON: a field of another shape than expected is taken as missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class MalformedAnswer(ValueError):
    """Raised when the server's answer is not what its API gives."""


class FailedAnswer(Exception):
    """Raised when an answer with status 200 says that the request failed."""

    def __init__(self, status: int, message: str, *, code: str = "") -> None:
        """Describe the failure. `status` is the HTTP status that the failure amounts to."""
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


def decoded(raw: str) -> dict[str, Any]:
    """Return a JSON object. Raises MalformedAnswer."""
    try:
        data = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise MalformedAnswer(f"{error}: {raw[:120]!r}") from error
    if not isinstance(data, dict):
        raise MalformedAnswer(f"no object: {raw[:120]!r}")
    return data


def as_object(value: object) -> Mapping[str, Any]:
    """Return an object; an empty one where the value is none."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """Return a list; an empty one where the value is none."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text; an empty one where the value is none."""
    return value if isinstance(value, str) else ""


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [each for each in as_list(value) if isinstance(each, dict)]


def whole(value: object, default: int = 0) -> int:
    """Return a count as a whole number; the default where it is none."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53 else default
