"""Values that a configuration key takes, in words, and the error about another value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

_PLAIN = {str: "text", int: "integer", float: "number"}
_YAML = {None: "null", True: "true", False: "false"}
_KINDS: dict[type, str] = {list: "a list", dict: "a mapping", str: "a text", int: "a number", float: "a number"}
"""Kinds of values, as YAML has them."""
_JSON = {"str": "text", "int": "an integer", "float": "a number", "bool": "true or false", "object": "a mapping", "array": "a list"}
"""Kinds of values, as errors of the conversion name them."""
_EXPECTED = re.compile(r"Expected `([^`]+)`, got `([^`]+)`$")
_MISSING_FIELD = re.compile(r"Object missing required field `(.*)`$")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`$")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_LONG = 60
"""Characters of a value that an error repeats."""


def words(kind: Any, quote: str = "") -> str:
    """Return the values that a type allows, such as `integer, at least 1`. `quote` stands around each fixed word."""
    kind = _present(kind)
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return f"{_PLAIN[parts[0]]}, {_range(parts[1])}"
    if origin in (Union, UnionType):
        return " or ".join(words(part, quote) for part in parts if part is not NoneType)
    if origin is Literal or kind is bool:
        return ", ".join(f"{quote}{part}{quote}" for part in parts or ("true", "false"))
    if origin is tuple:
        return f"list of{':' if get_origin(parts[0]) is Literal else ''} {words(parts[0], quote)}"
    return "mapping" if origin is dict else _PLAIN.get(kind, "section")


def _range(bounds: msgspec.Meta) -> str:
    low = f"above {bounds.gt:g}" if bounds.ge is None else f"{bounds.ge:.15g}"
    return f"{low} to {bounds.le:.15g}" if bounds.le is not None else low if bounds.ge is None else f"at least {low}"


def refusal(error: msgspec.ValidationError, data: Mapping[str, Any], section: type[msgspec.Struct], where: str = "") -> str:
    """Return one line about a value that does not fit: its key, the value, and the values that the key takes.

    The value is left out if the key takes text, which may be a secret. The line is that of `error` if it is about something else.

    Args:
        error: Error of the conversion of `data` to `section`.
        data: Keys of the section.
        section: Type of the section.
        where: Path of the section with a dot at its end; empty for a whole configuration.
    """
    text, _, path = str(error).rpartition(" - at `$")
    place = f"{where}{path.strip('.`')}"
    if found := _UNKNOWN_FIELD.match(text):
        return f"unknown key {place}.{found[1]}"
    if found := _MISSING_FIELD.match(text):
        return f"{place} lacks {found[1]}"
    if "[...]" in path and (found := _EXPECTED.match(text)):
        return f"{place.partition('[')[0]} has an entry that is {_JSON.get(found[2], found[2])}: give {_JSON.get(found[1], found[1])}"
    if text and not text.startswith(("Expected", "Invalid enum value")):  # of ours, which names the section's key
        return f"{text} (in {place})" if place not in text else text
    if not text or "[...]" in path:
        return str(error)
    value: Any = data
    kind: Any = section
    for name, index in _STEP.findall(path):
        value, kind = value[int(index) if index else name], _below(_present(kind), name)
    fits = words(kind)
    if not isinstance(value, str | int | float | None) or fits.startswith("text"):
        kind_of = _YAML[value] if isinstance(value, bool) else _KINDS.get(type(value), f"a {type(value).__name__}")
        return f"{place} is {kind_of}: give {_article(fits)}"
    shown = _YAML.get(value) if value is None or isinstance(value, bool) else str(value)[:_LONG]
    return f"{place} is {shown}: give {_article(fits)}"


def _article(fits: str) -> str:
    """Return the words for some values as the object of a sentence."""
    fits = {"section": "mapping of keys", "list of section": "list of mappings"}.get(fits, fits)
    first = fits.split(",")[0].split()[0]
    return {"integer": "an ", "number": "a ", "list": "a ", "mapping": "a ", "text": ""}.get(first, "one of ") + fits


def _present(kind: Any) -> Any:
    """Return a type without None."""
    parts = [part for part in get_args(kind) if part is not NoneType]
    return parts[0] if get_origin(kind) in (Union, UnionType) and len(parts) == 1 else kind


def _below(kind: Any, name: str) -> Any:
    """Return the type of a section's key or, without a name, of the elements of a list."""
    return get_type_hints(kind, include_extras=True)[name] if name else get_args(kind)[0]
