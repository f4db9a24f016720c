"""Types of answers: the JSON schema of a class, and an object of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from exact.agents.answer import checked_schema
from exact.errors import UsageError


def schema_of(kind: object) -> str:
    """Return the JSON schema of a pydantic model, a dataclass, a msgspec Struct, a TypedDict, or the schema that is given, as text.

    Raises UsageError if objects of it cannot be described.
    """
    if isinstance(kind, Mapping | str):
        return checked_schema(kind)
    if hasattr(kind, "model_json_schema"):
        return checked_schema(kind.model_json_schema())
    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise UsageError(
            f"answer {kind!r} has no JSON schema ({error}): give a pydantic model, a dataclass, a msgspec Struct, a TypedDict or a schema"
        ) from error
    parts = schema.get("$defs", {})
    root = parts.get(str(schema.get("$ref", "")).rpartition("/")[2], {})  # servers want an object at the root, not a reference to one
    return checked_schema({**root, "$defs": parts} if root else schema)


def as_kind(kind: Any, data: dict[str, Any] | None) -> Any:
    """Return an object that fits the schema of a type, as one of that type; None without one, or if the type refuses it."""
    if data is None or isinstance(kind, Mapping | str):
        return data
    try:
        return _made(kind, data)
    except (ValueError, TypeError):
        return None


def fault_of(kind: Any, data: dict[str, Any]) -> str:
    """Return why a type refuses an object that fits its schema, by a rule that no schema states; empty if it does not."""
    if isinstance(kind, Mapping | str):
        return ""
    try:
        _made(kind, data)
    except (ValueError, TypeError) as error:
        return " ".join(str(error).split())
    return ""


def _made(kind: Any, data: dict[str, Any]) -> Any:
    return kind.model_validate(data) if hasattr(kind, "model_validate") else msgspec.convert(data, kind)
