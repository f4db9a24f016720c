"""A number outside of its range, and a value of another type, are refused in one line with the key, the value and what the key takes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec
import pytest

from exact.config import SearchConfig, parse
from exact.config.ranges import words
from exact.config.search import OPTIONS
from exact.errors import UsageError
from exact.search.registry import algorithm
from tests.configuration_page import sections


def outside(kind: type[msgspec.Struct]) -> Iterator[tuple[str, float, str]]:
    """Yield each number of a section, with a value on each side of its range, and the range in words."""
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for part in (hint, *get_args(hint)):
            if get_origin(part) is Annotated:
                number, bounds = get_args(part)
                yield name, number(bounds.gt if bounds.ge is None else bounds.ge - 1), words(part)
                if bounds.le is not None:
                    yield name, number(bounds.le + 1), words(part)


def nested(path: str, value: object) -> dict[str, Any]:
    for name in reversed(path.split(".")):
        value = {name.removesuffix("[0]"): [value] if name.endswith("[0]") else value}
    assert isinstance(value, dict)
    return value


KEYS = [(f"{path}{'[0]' * (path == 'tools')}.{name}", *rest) for path, kind in sections() for name, *rest in outside(kind)]
CHOICES = [(name, *rest) for name, kind in OPTIONS.items() for rest in outside(kind)]


@pytest.mark.parametrize(("key", "value", "fits"), KEYS)
def test_a_number_outside_of_its_range_is_refused(key: str, value: float, fits: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(nested(key, value))
    assert str(error.value) == f"configuration: {key} is {value}: give {'an' if fits.startswith('integer') else 'a'} {fits}"


@pytest.mark.parametrize(("name", "option", "value", "fits"), CHOICES)
def test_an_option_outside_of_its_range_is_refused(name: str, option: str, value: float, fits: str) -> None:
    with pytest.raises(UsageError) as error:
        algorithm(SearchConfig(algorithm=name, options={option: value}))
    assert str(error.value) == f"search.options.{option} is {value}: give {'an' if fits.startswith('integer') else 'a'} {fits}"


def test_there_are_numbers_to_refuse() -> None:
    assert len(KEYS) > 60 and len(CHOICES) > 8


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"search": {"k": "many"}}, "search.k is many: give an integer, at least 1"),
        ({"search": {"k": True}}, "search.k is true: give an integer, at least 1"),
        ({"search": {"k": None}}, "search.k is null: give an integer, at least 1"),
        ({"search": {"c": float("inf")}}, "search.c is inf: give a number, 0 to 1000000"),
        ({"search": {"batch": 1}}, "search.batch is 1: give one of true, false"),
        ({"search": {"k": [1]}}, "search.k is a list: give an integer, at least 1"),
        ({"arms": [{"samples": 0}]}, "arms[0].samples is 0: give an integer, at least 1"),
        ({"value": {"members": [{}, {"rounds": -1}]}}, "value.members[1].rounds is -1: give an integer, at least 1"),
        ({"browser": {"allow_origins": "http://a"}}, "browser.allow_origins is http://a: give a list of text"),
        ({"search": {"k": {"a": 1}}}, "search.k is a mapping: give an integer, at least 1"),
        ({"reflection": {"kind": ["llm"]}}, "reflection.kind is a list: give one of none, builtin, llm"),
        ({"models": {"policy": "gpt-4o"}}, "models.policy is gpt-4o: give a mapping of keys"),
        ({"arms": 3}, "arms is 3: give a list of mappings"),
        ({"tools": [{"kind": "x", "y": 1}]}, "unknown key tools[0].y"),
        ({"browser": {"geolocation": {}}}, "browser.geolocation lacks latitude"),
        ({"browser": {"login": {"secrets": {"a": 5}}}}, "browser.login.secrets has an entry that is an integer: give text"),
        ({"browser": {"login": {"password": 4711}}}, "browser.login.password is a number: give text"),
    ],
)
def test_a_value_of_another_type_is_told_unless_it_may_be_a_secret(data: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as error:
        parse(data)
    assert str(error.value) == f"configuration: {says}"


def test_a_word_that_a_key_does_not_take_is_told_with_its_place() -> None:
    with pytest.raises(UsageError, match=r"unknown value 'x' in configuration key policy.kind: .* \(in arms\[0\]\)$"):
        parse({"arms": [{"kind": "x"}]})
    with pytest.raises(UsageError, match=r"did you mean 'llm'\? or write module:attribute$"):
        parse({"policy": {"kind": "llmm"}})


def test_a_value_that_is_no_number_is_not_told_as_renamed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match=r"view\.observation_tokens is nan: give an integer, at least 1"):
        parse({"view": {"observation_tokens": float("nan")}})
    assert capsys.readouterr().err == ""
