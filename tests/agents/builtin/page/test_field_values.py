import pytest

from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.field_values import form_is_complete, given_value, is_search_field
from tests.agents.builtin.pages import page


@pytest.mark.parametrize(
    ("label", "instruction", "value"),
    [
        ("Priority:", "Open a report: priority urgent, part engine.", "urgent"),
        ("Part", "Open a report: priority urgent, part engine.", "engine"),
        ("Title*", 'Write a page with the title "Of knots", author Nora Dahl.', "Of knots"),
        ("Author", 'Write a page with the title "Of knots", author Nora Dahl.', "Nora Dahl"),
        ("Name:", "Add a berth with the name 1.2 North.", "1.2 North"),
        ("Level", 'Set the level of the warning "High tide" to Red.', "Red"),
        ("Basin", "Two boats of the basin South have no owner. Move both to the basin North.", "North"),
        ("Colour", "Open a report: priority urgent.", ""),
        ("", "Open a report: priority urgent.", ""),
    ],
)
def test_a_field_gets_the_value_next_to_its_label(label, instruction, value):
    assert given_value(label, instruction) == value


def form(*values):
    return pages.read_page(page(("textbox", "Title", *values[:1]), ("textbox", "Text", *values[1:]), ("button", "Save")), "")


def test_a_form_is_complete_when_it_holds_all_that_is_given_and_quoted():
    asked = 'Add a note "Closed" with the title Harbour.'
    assert form_is_complete(asked, form()) is False
    assert form_is_complete(asked, form("=Harbour")) is False
    assert form_is_complete(asked, form("=Harbour", "=Closed")) is True


def test_a_form_for_which_nothing_is_given_is_neither():
    assert form_is_complete("Delete the note.", form()) is None


def test_a_field_to_search_by_says_so_or_its_button_does():
    seen = pages.read_page(
        page(("textbox", ""), ("button", "Search"), ("textbox", "Find a page"), ("textbox", "Title"), ("button", "Save")), ""
    )
    assert [is_search_field(item, seen) for item in seen.items if item.role == "textbox"] == [True, True, False]
