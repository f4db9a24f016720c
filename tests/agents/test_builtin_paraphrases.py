"""What the embedded agent works out on a page does not hang on one way of asking for it.

Each skill is asked for in words of several people, on a page that is no benchmark's, and the first choice must be the same.
"""

import pytest

from exact.agents.builtin.policy import BuiltinPolicy

from .builtin_pages import ACTIONS, context, page


async def best(instruction, observation, *steps):
    given = context(instruction, observation, *steps)
    return str((await BuiltinPolicy().propose(given, ACTIONS, 1))[0].action)


CITIES = page(
    ("heading", "Where do you want to go?"),
    ("StaticText", "City"),
    ("textbox", "City"),
    ("StaticText", "Passengers"),
    ("spinbutton", "Passengers", "=1"),
    ("button", "Search"),
)
OFFERED = page(
    *((e.role, e.name) for e in CITIES.elements[:2]),
    ("textbox", "City", "=Nor", "focused"),
    ("option", "Norfolk"),
    ("option", "Norland"),
    ("option", "Norwich"),
    ("button", "Search"),
    fingerprint="offered",
)
BEGINNINGS = (
    'Enter an item that starts with "Nor" and ends with "land".',
    'Type a city whose name begins with "Nor" and ends in "land".',
    'Write something beginning with "Nor" and ending in "land" in the city field.',
    'Fill in the city starting with "Nor" and finishing with "land".',
    'Put in a place with the prefix "Nor" and the suffix "land".',
    'Enter a city that has "Nor" at its start and "land" at its end.',
    "Enter a city that starts with Nor and ends with land.",
)


@pytest.mark.parametrize("asked", BEGINNINGS)
async def test_what_is_told_by_its_beginning_is_begun_and_then_taken_from_what_is_offered(asked):
    assert await best(asked, CITIES) == 'fill [3] "Nor"'
    assert await best(asked, OFFERED, (CITIES, 'fill [3] "Nor"')) == "click [5]"


STORY = page(
    ("heading", "Chapter one"),
    ("paragraph", "", 0),
    ("StaticText", "Rain fell on the quiet harbour, and nobody came.", 1),
    ("StaticText", "Your answer", 0),
    ("textbox", "Your answer", 0),
    ("button", "Check", 0),
)
COUNTED = (
    "Find the 6th word in the paragraph, type that into the textbox and press Check.",
    "Type the sixth word of the text into the answer field.",
    "What is the 6th word of the story? Enter it into the box.",
    "Write word number 6 of the passage in the answer field.",
    "Look for the word that comes sixth in the sentence and put it into the field.",
    "Copy the sixth word of the paragraph into the answer box.",
)


@pytest.mark.parametrize("asked", COUNTED)
async def test_a_word_told_by_its_place_is_counted_out(asked):
    assert await best(asked, STORY) == 'fill [5] "harbour"'


@pytest.mark.parametrize(
    ("asked", "wanted"),
    [
        ("Enter the last word of the text into the field.", "came"),
        ("Type the 2nd letter of the text into the field.", "a"),
        ("Type the third letter of the second word into the field.", "l"),
    ],
)
async def test_other_places_and_letters_are_counted_out_too(asked, wanted):
    assert await best(asked, STORY) == f'fill [5] "{wanted}"'


NOTES = page(
    ("StaticText", "Draft"),
    ("textbox", "Draft", "=pear 12"),
    ("StaticText", "Old"),
    ("textbox", "Old", "=fig 7"),
    ("StaticText", "Final"),
    ("textbox", "Final", "="),
    ("button", "Save"),
)
COPIES = (
    "Copy the text from the 2nd text area and paste it into the text input, then press Save.",
    "Copy the contents of the second box into the last one.",
    "Type the text of the second field into the final field and save it.",
    "Transfer what is in the second box to the Final box.",
    "Enter what the second text box says into Final.",
    "Duplicate the second field's text into the empty field.",
)


@pytest.mark.parametrize("asked", COPIES)
async def test_what_stands_in_one_field_is_written_into_another(asked):
    assert await best(asked, NOTES) == 'fill [6] "fig 7"'


@pytest.mark.parametrize(
    "asked",
    [
        "Copy the text of the field Old into the field Final.",
        "Copy Old to Final.",
        "Type the contents of Old into Final.",
        "Put the text in Old into Final.",
    ],
)
async def test_the_field_to_copy_from_may_be_told_by_its_label(asked):
    assert await best(asked, NOTES) == 'fill [6] "fig 7"'


CODE = page(
    ("heading", "One more step"),
    ("StaticText", "kestrel moor 4417"),
    ("StaticText", "Code"),
    ("textbox", "Code"),
    ("button", "Continue"),
)
SHOWN = (
    "Type the text below into the text field and press Continue.",
    "Enter the code that is displayed on the page into the field.",
    "Write the words you see above in the code box.",
    "Retype the code shown here into the field and continue.",
    "Read the phrase on the screen and type it into the box.",
    "Copy the text on this page into the field.",
)


@pytest.mark.parametrize("asked", SHOWN)
async def test_a_text_that_is_only_pointed_at_is_written_as_it_stands_there(asked):
    assert await best(asked, CODE) == 'fill [4] "kestrel moor 4417"'


TABLE = page(
    ("table", "", 0),
    ("row", "", 1),
    ("rowheader", "Country", 2),
    ("cell", "Chad", 2),
    ("row", "", 1),
    ("rowheader", "Favourite colour", 2),
    ("cell", "teal", 2),
    ("textbox", "Answer", 0),
    ("button", "Send", 0),
)
LISTED = page(
    ("heading", "Your order"),
    ("term", "Country"),
    ("definition", "Chad"),
    ("term", "Favourite colour"),
    ("definition", "teal"),
    ("StaticText", "Reply"),
    ("searchbox", "Reply"),
    ("button", "Send"),
)
LOOKED_UP = (
    "Enter the value of Favourite colour into the text field and press Send.",
    "Type the favourite colour into the field.",
    "What is the favourite colour? Write it in the box.",
    "Look up Favourite colour in the table and enter it into the field.",
    "Fill the field with the favourite colour given on the page.",
    "Read the favourite colour and put it in the box.",
    "Please enter the person's favourite colour.",
)


@pytest.mark.parametrize(("shape", "field"), [(TABLE, 8), (LISTED, 7)])
@pytest.mark.parametrize("asked", LOOKED_UP)
async def test_a_value_that_stands_beside_its_name_is_looked_up(asked, shape, field):
    assert await best(asked, shape) == f'fill [{field}] "teal"'


async def test_a_text_that_is_given_is_not_looked_up():
    both = page(("cell", "Colour"), ("cell", "teal"), ("textbox", "Colour"), ("button", "Send"))
    assert await best('Enter "red" as the colour.', both) == 'fill [3] "red"'


SUM = page(("heading", "Are you human?"), ("StaticText", "12 - 5 ="), ("textbox", "Reply"), ("button", "Go on"))
UNKNOWN = page(("StaticText", "x - 5 = 12"), ("textbox", "x"), ("button", "Go on"))
RECKONED = (
    "Solve the math problem and type your answer into the textbox.",
    "Work out the sum and write it in the field.",
    "Type what this comes to into the field.",
    "Fill in the missing number.",
    "Evaluate the expression, then enter its value into the box.",
)


@pytest.mark.parametrize("asked", RECKONED)
async def test_a_sum_on_the_page_is_reckoned(asked):
    assert await best(asked, SUM) == 'fill [3] "7"'
    assert await best(asked, UNKNOWN) == 'fill [2] "17"'
