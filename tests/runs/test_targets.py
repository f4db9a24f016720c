"""An element of an earlier observation is found again only where exactly one still is it."""

from __future__ import annotations

import pytest

from exact.observation import Element, Observation
from exact.runs.targets import did_the_same, find_again, is_same_page, row_of


def page(*elements: tuple[str, ...], url: str = "http://shop.test/items", depth: int = 0) -> Observation:
    """Return an observation of (role, name, indent) elements, with ids from 1."""
    made = tuple(
        Element(id=str(i), role=each[0], name=each[1], depth=len(each[2]) if len(each) > 2 else 0) for i, each in enumerate(elements, 1)
    )
    return Observation(text="", fingerprint=str(made), url=url, elements=made)


ROWS = (("row", ""), ("cell", "Ann", " "), ("button", "Delete", " "), ("row", ""), ("cell", "Bob", " "), ("button", "Delete", " "))
SORTED = (*ROWS[3:], *ROWS[:3])


def test_one_of_several_is_known_by_the_words_of_its_row() -> None:
    assert find_again(page(*ROWS), "3", page(*SORTED)) == "6"
    assert find_again(page(*ROWS), "3", page(*ROWS[3:])) is None, "Ann is gone, and nobody else is deleted"


@pytest.mark.parametrize(
    ("now", "found"),
    [
        ((("link", "New"), ("link", "Inbox (5)")), "2"),
        ((("link", "Inbox (5)"), ("link", "Inbox (3)")), "2"),
        ((("link", "Inbox (5)"), ("link", "Inbox (7)")), None),
        ((("button", "Inbox (3)"),), None),
    ],
)
def test_numbers_in_a_name_count_only_where_they_tell_elements_apart(now: tuple[tuple[str, str], ...], found: str | None) -> None:
    assert find_again(page(("link", "Inbox (3)")), "1", page(*now)) == found


def test_equal_elements_are_known_by_the_text_above_them() -> None:
    then = page(("StaticText", "Home"), ("textbox", "City"), ("StaticText", "Work"), ("textbox", "City"))
    now = page(("StaticText", "Work"), ("textbox", "City"), ("StaticText", "Home"), ("textbox", "City"))
    assert find_again(then, "2", now) == "4"


def test_a_page_with_a_new_alert_or_another_address_is_another_page() -> None:
    then = page(("link", "A"), ("link", "B"))
    assert is_same_page(then, page(("link", "B"), ("link", "C")))
    assert not is_same_page(then, page(("link", "A"), ("link", "B"), ("alert", "Sold out")))
    assert not is_same_page(then, page(("link", "A"), ("link", "B"), url="http://shop.test/cart"))


def test_a_step_did_the_same_if_it_brought_most_of_what_was_brought_then() -> None:
    before, after = page(("link", "Edit")), page(("textbox", "Text"), ("button", "Save"), url="http://shop.test/edit")
    assert did_the_same(before, after, page(("link", "Change")), after)
    assert not did_the_same(before, after, page(("link", "Change")), page(("heading", "Gone"), url="http://shop.test/edit"))
    assert not did_the_same(before, before, before, before), "what brings nothing cannot be told"


def test_a_row_is_named_by_a_text_that_only_it_has() -> None:
    assert (row_of(page(*ROWS), "3"), row_of(page(*ROWS), "6")) == (("row", "Ann"), ("row", "Bob"))
    assert row_of(page(*ROWS[:3]), "3") is None
