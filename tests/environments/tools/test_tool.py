"""A function becomes a tool: its verb, form, grammar, schema and canonical arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pytest

import exact
from exact.action import ActionSpace
from exact.environments.tools.schema import shape_of
from exact.environments.tools.tool import function_tool
from exact.errors import ActionError, UsageError


@dataclass
class Address:
    street: str
    number: int = 1


@exact.tool(effect="read", seconds=2)
def find_customer(name: str, limit: int = 3, kind: Literal["person", "firm"] = "person") -> list[str]:
    """Find customers by a part of their name.

    Args:
        name: Part of the name.
        limit: Most customers.
    """
    return [f"{name} {limit} {kind}"]


async def move(where: Address, when: Annotated[str, msgspec.Meta(pattern="^2")] = "2026") -> None:
    """Move house."""


SPACE = ActionSpace([function_tool(find_customer).verb, function_tool(move).verb, "wait"])


def test_the_verb_tells_names_types_and_what_the_docstring_says() -> None:
    line, *_ = SPACE.describe().splitlines()
    assert line.startswith('find_customer {"name": text, "limit": whole number (optional), "kind": "firm" or "person" (optional)}')
    assert line.endswith("Find customers by a part of their name. (name: Part of the name.; limit: Most customers.)")
    assert find_customer("Ann") == ["Ann 3 person"], "the function stays what it was"


@pytest.mark.parametrize(
    "written",
    [
        'find_customer {"name": "Ann"}',
        'find_customer {"limit": 3, "name": "Ann"}',
        'find_customer {"name":"Ann","kind":"person"}',
        'find_customer {\n  "name": "Ann"\n}',
    ],
)
def test_equal_arguments_make_one_action_however_they_are_written(written: str) -> None:
    action = SPACE.parse(written)
    assert action.key == 'find_customer {"name": "Ann"}' and SPACE.parse(action.key) == action


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("find_customer", "missing required field `name`"),
        ('find_customer {"name": 3}', r"Expected `str`, got `int` - at `\$.name`"),
        ('find_customer {"name": "Ann", "age": 3}', "unknown field `age`"),
        ('find_customer {"name": "Ann", "kind": "cat"}', "Invalid enum value 'cat'"),
        ("find_customer {name: 'Ann'}", 'write a JSON object, such as {"name": "text"}'),
        ('find_customer {"name": NaN}', "write a JSON object"),
        ('find_customer "Ann"', "does not fit: find_customer takes a JSON object"),
        ('move {"where": {"street": "Hill", "number": "one"}}', r"at `\$.where.number`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_place_and_the_form(written: str, says: str) -> None:
    with pytest.raises(ActionError, match=says):
        SPACE.parse(written)


def test_a_tool_without_arguments_is_written_by_its_name_alone() -> None:
    def ring() -> str:
        """Ring the bell."""
        return "ding"

    assert ActionSpace([function_tool(ring).verb]).parse("ring").key == "ring {}"


def test_the_schema_has_the_types_and_descriptions_of_nested_arguments_too() -> None:
    schema = function_tool(move).schema
    assert schema["required"] == ["where"] and schema["$defs"]["Address"]["properties"]["street"] == {"type": "string"}
    assert shape_of(schema) == '{"where": {...}, "when": text (optional)}'


def test_a_function_without_a_name_is_refused() -> None:
    with pytest.raises(UsageError, match="'<lambda>' is no function with a name"):
        function_tool(lambda name: None)


def test_an_argument_without_a_type_or_a_name_is_refused() -> None:
    def untyped(name):  # type: ignore[no-untyped-def]
        """Do something."""

    def many(*names: str) -> None:
        """Do something."""

    with pytest.raises(UsageError, match=r"untyped has no type for name: write name: str"):
        function_tool(untyped)
    with pytest.raises(UsageError, match=r"many takes .*names"):
        function_tool(many)


@pytest.mark.parametrize(
    ("given", "says"),
    [({"effect": "look"}, "read or write"), ({"effect": "read", "confirm": True}, "nobody is asked"), ({"seconds": 0}, "above 0")],
)
def test_a_declaration_that_says_nothing_is_refused(given: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        exact.tool(**given)  # type: ignore[call-overload]
