"""JSON schemas of arguments: the form and the grammar in which a model writes them, and whether an object fits.

A schema may come from a stranger's server, so its words are cut to a few and never stand on a line of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from exact.text import inert

MOST_MEMBERS = 24
"""Members of an object that its form shows."""
LONGEST_WORD = 60
"""Characters of a name or a choice that a form shows."""
_SCALARS = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "null": "null"}
_BRACKETS = str.maketrans({**dict.fromkeys("⟦〚⟬⦗【", "["), **dict.fromkeys("⟧〛⟭⦘】", "]")})
_TEXT = r'''"\"" ([^"\\\r\n\t] | "\\" ["\\/nrt]){0,400} "\""'''
_WHOLE = '"-"? ("0" | [1-9] [0-9]{0,11})'
_GRAMMARS = {
    "string": _TEXT,
    "integer": _WHOLE,
    "number": f'{_WHOLE} ("." [0-9]{{1,6}})?',
    "boolean": '("true" | "false")',
    "null": '"null"',
}
JSON_GRAMMAR = "\n".join(
    (
        'json ::= json-object | json-list | json-text | json-number | "true" | "false" | "null"',
        'json-object ::= "{" (json-text ": " json (", " json-text ": " json){0,20})? "}"',
        'json-list ::= "[" (json (", " json){0,50})? "]"',
        f"json-text ::= {_TEXT}",
        f"json-number ::= {_GRAMMARS['number']}",
    )
)
"""Rules (GBNF) of any JSON value, to which the grammars of arguments refer."""


def one_line(text: str, most: int) -> str:
    """Return a text as one line of at most `most` characters, without marks of fences."""
    return inert(" ".join(text.split()), most).translate(_BRACKETS)


def shape_of(schema: Mapping[str, Any]) -> str:
    """Return the form of an object in prompts: `{"name": text, "limit": whole number (optional)}`."""
    members, required = _members(schema), _required(schema)
    shown = [
        f"{_quoted(name)}: {_kind(each, schema)}{'' if name in required else ' (optional)'}"
        for name, each in list(members.items())[:MOST_MEMBERS]
    ]
    return "{" + ", ".join([*shown, *(["..."] if len(members) > MOST_MEMBERS else [])]) + "}"


def in_words(schema: Mapping[str, Any]) -> str:
    """Return the members of an object in words that cannot be copied as one: `name is text, limit is whole number (optional)`."""
    members, required = list(_members(schema).items())[:MOST_MEMBERS], _required(schema)
    told = [f"{one_line(name, LONGEST_WORD)} is {_kind(each, schema)}{'' if name in required else ' (optional)'}" for name, each in members]
    return ", ".join(told) or "there is no member"


def grammar_of(schema: Mapping[str, Any]) -> str:
    """Return the grammar (GBNF) of an object: its members in their order, of which those that are not required may be left out."""
    members, required = _members(schema), _required(schema)
    needed = [_member(name, each, schema) for name, each in members.items() if name in required]
    others = [_member(name, each, schema) for name, each in members.items() if name not in required]
    if needed:
        return " ".join(('"{"', ' ", " '.join(needed), *(f'(", " {each})?' for each in others), '"}"'))
    if not others:
        return "json-object" if schema.get("additionalProperties", True) is not False else '"{}"'
    ways = (" ".join((first, *(f'(", " {each})?' for each in others[at + 1 :]))) for at, first in enumerate(others))
    return f'"{{" ({" | ".join(ways)})? "}}"'


def fault_in(schema: Mapping[str, Any], found: object) -> str:
    """Return why an object does not fit a schema, with the place of the fault; empty if it fits. Nothing outside is fetched."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
    from jsonschema.exceptions import best_match  # type: ignore[import-untyped]
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        error = best_match(Draft202012Validator(schema, registry=Registry()).iter_errors(found))
    except Unresolvable as failed:
        return f"the schema refers to what is not in it: {one_line(str(failed), LONGEST_WORD)}"
    if error is None:
        return ""
    place = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error.absolute_path).lstrip(".")
    return one_line(f"{place or 'the object'}: {error.message}", 300)


def _members(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(schema: Mapping[str, Any]) -> Sequence[str]:
    found = schema.get("required")
    return found if isinstance(found, Sequence) else ()


def _resolved(schema: object, whole: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema, or the one that it refers to in the same document; empty for any other reference."""
    if not isinstance(schema, Mapping):
        return {}
    name = str(schema.get("$ref", ""))
    if not name:
        return schema
    found = whole.get("$defs")
    one = found.get(name.removeprefix("#/$defs/")) if isinstance(found, Mapping) else None
    return one if isinstance(one, Mapping) and "$ref" not in one else {}


def _quoted(text: object) -> str:
    return json.dumps(one_line(str(text), LONGEST_WORD), ensure_ascii=False)


def _kind(schema: object, whole: Mapping[str, Any]) -> str:
    """Return a schema in a word or two."""
    found = _resolved(schema, whole)
    choices = _choices(found)
    if choices:
        return " or ".join(map(_quoted, choices)) if all(isinstance(each, str) for each in choices) else "one of its values"
    if isinstance(ways := found.get("anyOf", found.get("oneOf")), Sequence):
        return " or ".join(dict.fromkeys(_kind(each, whole) for each in ways[:MOST_MEMBERS]))
    kind = found.get("type")
    if kind == "array":
        return f"[{_kind(found.get('items', {}), whole)}, ...]"
    if isinstance(kind, list):
        return " or ".join(_SCALARS.get(each, "JSON") for each in kind if isinstance(each, str))
    return "{...}" if kind == "object" else _SCALARS.get(kind, "JSON") if isinstance(kind, str) else "JSON"


def _choices(schema: Mapping[str, Any]) -> Sequence[Any]:
    found = [schema["const"]] if "const" in schema else schema.get("enum")
    return found[:MOST_MEMBERS] if isinstance(found, list) else ()


def _member(name: str, schema: object, whole: Mapping[str, Any]) -> str:
    return f"{_literal(json.dumps(name, ensure_ascii=False) + ': ')} {_value(schema, whole)}"


def _value(schema: object, whole: Mapping[str, Any]) -> str:
    """Return the grammar of a value: exact for plain ones and lists of them, any JSON for others."""
    found = _resolved(schema, whole)
    if choices := _choices(found):
        return f"({' | '.join(_literal(json.dumps(each, ensure_ascii=False)) for each in choices)})"
    if found.get("type") == "array":
        each = _value(found.get("items", {}), whole)
        return f'"[" ({each} (", " {each}){{0,50}})? "]"'
    kind = found.get("type")
    return f"({_GRAMMARS[kind]})" if isinstance(kind, str) and kind in _GRAMMARS else "json"


def _literal(text: str) -> str:
    """Return a text as a literal of the grammar."""
    return json.dumps(text, ensure_ascii=False)
