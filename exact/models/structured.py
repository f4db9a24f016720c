"""Answers that are JSON, read from what a model wrote: alone, in a fence, or with words around it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec

from exact.errors import AnswerError

_THOUGHT = re.compile(r"\A.*</think>", re.S)
_OPENING = re.compile(r"[{\[]")
_TRIES = 200
"""Opening brackets that are tried."""

T = TypeVar("T")


def read(text: str, kind: type[T]) -> T:
    """The one object in a text that is a `kind`, a msgspec Struct or a plain type. For `ask`, as its parse.

    Looked for from the outermost bracket inwards, left to right. Raises AnswerError: there is none, or several that differ.
    """
    said, wrong = _THOUGHT.sub("", text), ""
    found: list[T] = []
    for value in _values(said):
        try:
            converted = msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            wrong = wrong or str(error)
        else:
            if converted not in found:
                found.append(converted)
    if len(found) == 1:
        return found[0]
    if found:
        raise AnswerError(f"there are {len(found)} JSON objects that differ: write one")
    raise AnswerError(f"the JSON is not as asked: {wrong}" if wrong else "there is no JSON object: write one, and nothing else")


def _values(text: str) -> Iterator[Any]:
    """The outermost JSON objects and arrays in a text, in order."""
    decoder, at, tries = json.JSONDecoder(), 0, 0
    while (match := _OPENING.search(text, at)) and tries < _TRIES:
        tries += 1
        try:
            value, at = decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.start() + 1
        else:
            yield value
