"""Relations between the elements of a page."""

from __future__ import annotations

import pytest

from exact.agents.builtin.page.page import Item, read_page
from exact.agents.learned.features import asked_count, inversion, leads, order
from tests.agents.builtin.pages import page


def items(*elements: tuple[str, str]) -> tuple[Item, ...]:
    return read_page(page(*elements), "").items


def test_the_texts_before_a_row_of_buttons_lead_to_each_of_them() -> None:
    rows = [(("StaticText", name), ("image", ""), ("image", "")) for name in ("Ann", "Bob")]
    assert leads(items(*(each for row in rows for each in row)))[1:] == ["Ann", "Ann", "", "Bob", "Bob"]


@pytest.mark.parametrize(("numbers", "said"), [("1 2 10", "rising"), ("10 2 1", "falling"), ("2 1 10", ""), ("1 2", "")])
def test_the_order_of_numbers_is_told(numbers: str, said: str) -> None:
    assert order(items(*(("listitem", number) for number in numbers.split()), ("button", "0"))) == said


def test_two_numbers_that_fall_are_inverted() -> None:
    first, second, word = items(("listitem", "9"), ("listitem", "-4"), ("listitem", "x"))
    assert [inversion(first, second), inversion(second, first), inversion(first, word)] == [1.0, 1.0, 0.0]


def test_those_with_the_most_words_of_an_instruction_are_counted() -> None:
    shapes = items(("image", "red circle"), ("image", "red circle"), ("image", "blue circle"), ("button", "red circle"))
    assert asked_count(shapes, ("many", "red", "circles")) == "2"
    assert asked_count(shapes, ("nothing",)) == ""
