"""The built-in agent's reading skills, one at a time."""

import pytest

from exact.agents.builtin.judge.clicks import calendar_step
from exact.agents.builtin.judge.progress import holds_text
from exact.agents.builtin.language.instruction import parse_instruction
from exact.agents.builtin.language.lexical import similarity
from exact.agents.builtin.page import page as pages
from exact.agents.builtin.page.derive import derive_text, format_for_field
from exact.agents.builtin.page.matching import superlative_item
from exact.agents.builtin.policy import LexicalPolicy
from tests.agents.builtin.pages import ACTIONS, context, page


async def best(given):
    return str((await LexicalPolicy().propose(given, ACTIONS, 1))[0].action)


def text_for(instruction, observation):
    goal = parse_instruction(instruction)
    part = next(part for part in goal.subgoals if part.kind == "fill")
    return derive_text(part, pages.read_page(observation, instruction))


@pytest.mark.parametrize(
    ("phrase", "near", "far"), [("Submit", "submit", "Cancel"), ("first name", "First name:", "Last name"), ("x", "Close", "Open")]
)
def test_a_label_is_closer_to_its_phrase_than_to_another(phrase, near, far):
    assert similarity(phrase, near) >= 0.9 > 0.6 > similarity(phrase, far)


@pytest.mark.parametrize(("shown", "wanted"), [("May 2024", "17"), ("April 2024", "Next"), ("January 2025", "Prev")])
def test_a_calendar_is_turned_to_the_month_and_then_the_day_is_clicked(shown, wanted):
    month = page(("link", "Prev"), ("link", "Next"), ("StaticText", shown), ("link", "16"), ("link", "17"))
    assert calendar_step("05/17/2024", pages.read_page(month, "")).label == wanted


@pytest.mark.parametrize(("word", "wanted"), [("cheapest", "Book B"), ("greatest", "Book C")])
def test_a_superlative_means_the_element_with_that_number(word, wanted):
    shop = page(
        ("StaticText", "$30"),
        ("button", "Book A"),
        ("StaticText", "$12"),
        ("button", "Book B"),
        ("StaticText", "$95"),
        ("button", "Book C"),
    )
    (part,) = parse_instruction(f"Buy the {word} one").subgoals
    assert superlative_item(part, pages.read_page(shop, "")).label == wanted


def test_a_value_is_looked_up_beside_its_label():
    table = page(("cell", "Country"), ("cell", "Chad"), ("cell", "Colour"), ("cell", "teal"), ("textbox", "Answer"))
    assert text_for("Enter the value of Colour into the field.", table) == "teal"


def test_sums_on_the_page_are_reckoned():
    assert text_for("Solve the problem and type your answer into the field.", page(("StaticText", "12 - 5 ="), ("textbox", ""))) == "7"


def test_a_word_of_a_text_is_counted_out():
    text = page(("paragraph", "Alpha beta, gamma delta."), ("textbox", ""))
    assert text_for("Find the 3rd word in the paragraph and type that into the field.", text) == "gamma"


def test_a_time_field_gets_24_hours():
    clock = pages.read_page(page(("InputTime", "")), "").items[0]
    assert (format_for_field(clock, "12:05 AM"), format_for_field(clock, "1:30 PM")) == ("00:05", "13:30")


@pytest.mark.parametrize(
    ("value", "text", "ending", "held"),
    [("••••", "x9ab", "", True), ("•••", "x9ab", "", False), ("Norland", "Nor", "land", True), ("Nor", "Nor", "land", False)],
)
def test_a_field_holds_a_text_also_masked_or_completed(value, text, ending, held):
    assert holds_text(value, text, ending) == held


async def test_a_text_in_the_wrong_field_is_cleared():
    form = page(("StaticText", "Name"), ("textbox", "", "=x9"), ("StaticText", "Password"), ("textbox", "", "=••"), ("button", "Login"))
    assert await best(context('Enter the password "x9" and press login.', form)) == 'fill [2] ""'


async def test_a_menu_is_opened_by_hovering_not_by_choosing():
    menu = page(("menuitem", "File"), ("menuitem", "Edit"))
    assert await best(context("Select Edit>Paste", menu)) == "hover [2]"


async def test_the_instruction_repeated_on_the_page_is_not_acted_on():
    repeated = page(("StaticText", "Click on the link"), ("StaticText", '"dolor"'), ("link", "amet"), ("link", "dolor"))
    assert await best(context('Click on the link "dolor"', repeated)) == "click [4]"


async def test_the_button_beside_the_named_value_is_preferred_among_equal_buttons():
    rows = page(("row", "", 0), ("cell", "Ann", 1), ("button", "Delete", 1), ("row", "", 0), ("cell", "Bob", 1), ("button", "Delete", 1))
    assert await best(context("Delete the entry of Bob", rows)) == "click [6]"
