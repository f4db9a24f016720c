"""What an agent may see."""

from __future__ import annotations

import msgspec
import pytest

from exact.observation import Box, Element, Observation

SEEN = Observation(
    text='[1] button "Go"\n  [2] textbox',
    fingerprint="ab",
    url="http://a/",
    elements=(
        Element(id="1", role="button", name="Go", box=Box(1, 2, 3, 4)),
        Element(id="2", role="textbox", value="", states=("focused",), visible=False, depth=1),
    ),
    tabs=("http://b/",),
    screenshot=b"\x89PNG",
)


def test_an_element_is_found_by_its_id() -> None:
    assert SEEN.element("2") is SEEN.elements[1]
    assert SEEN.element("3") is None


def test_written_and_read_it_is_the_same() -> None:
    assert msgspec.json.decode(msgspec.json.encode(SEEN), type=Observation) == SEEN


def test_an_empty_value_is_not_an_absent_one() -> None:
    element = Element(id="1", role="textbox", value="")
    assert msgspec.json.decode(msgspec.json.encode(element), type=Element).value == ""
    assert element != Element(id="1", role="textbox")


def test_an_observation_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        SEEN.text = "else"  # type: ignore[misc]
