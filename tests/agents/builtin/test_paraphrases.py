"""The built-in agent's results do not depend on the wording of the instruction.

Each skill is asked for in words of several people, on a page that is no benchmark's, and the first choice must be the same.
"""

import pytest

from exact.agents.builtin.policy import LexicalPolicy
from tests.agents.builtin.pages import ACTIONS, context, page


async def best(instruction, observation, *steps):
    given = context(instruction, observation, *steps)
    return str((await LexicalPolicy().propose(given, ACTIONS, 1))[0].action)


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
    'Find a city that begins with "Nor" and ends with "land" and type it.',
)


@pytest.mark.parametrize("asked", BEGINNINGS)
async def test_a_value_given_by_its_beginning_is_typed_and_then_chosen_from_the_suggestions(asked):
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
async def test_a_word_given_by_its_position_is_counted(asked):
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
async def test_the_value_of_one_field_is_copied_into_another(asked):
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
async def test_the_field_to_copy_from_may_be_given_by_its_label(asked):
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
async def test_a_text_that_is_only_pointed_at_is_copied_verbatim(asked):
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
async def test_a_value_next_to_its_name_is_looked_up(asked, shape, field):
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


ORDER = page(("StaticText", "Delivery day"), ("textbox", "Delivery day", "readonly"), ("button", "Order"))
APRIL = page(
    ("textbox", "Delivery day", "readonly", "focused"),
    ("link", "Prev"),
    ("StaticText", "April 2024"),
    ("link", "Next"),
    ("gridcell", "16"),
    ("gridcell", "17"),
    ("button", "Order"),
    fingerprint="april",
)
MAY = page(
    *((e.role, e.name, *e.states) for e in APRIL.elements[:2]),
    ("StaticText", "May"),
    ("StaticText", "2024"),
    ("gridcell", "16"),
    ("gridcell", "17"),
)
DATES = (
    "Select 05/17/2024 as the date and press Order.",
    "Choose May 17, 2024 as the delivery day.",
    "Pick 17 May 2024 and press Order.",
    "Set the delivery day to May 17th, 2024.",
    "Enter 2024-05-17 as the day.",
    'Enter "17th of May 2024" in the delivery day field.',
)


@pytest.mark.parametrize("asked", DATES)
async def test_a_day_is_found_in_a_calendar_however_its_date_is_written(asked):
    assert await best(asked, ORDER) == "click [2]"
    assert await best(asked, APRIL, (ORDER, "click [2]")) == "click [4]"
    assert await best(asked, MAY, (ORDER, "click [2]"), (APRIL, "click [4]")) == "click [6]"


@pytest.mark.parametrize("asked", DATES)
async def test_a_date_field_gets_its_own_notation(asked):
    assert await best(asked, page(("StaticText", "Day"), ("Date", "Day"), ("button", "Order"))) == 'fill [2] "2024-05-17"'


@pytest.mark.parametrize("asked", DATES)
async def test_a_day_that_was_chosen_is_known_in_the_notation_of_the_page(asked):
    chosen = page(("StaticText", "Delivery day"), ("textbox", "Delivery day", "=05/17/2024", "readonly"), ("button", "Order"))
    assert await best(asked, chosen, (ORDER, "click [2]")) == "click [3]"


TERMS = page(("heading", "Terms"), ("textbox", "Terms", "=Many words", "focused"), ("button", "Agree"))


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        ("Scroll the textarea to the bottom of the text hit submit.", "End"),
        ("Scroll down to the end of the terms.", "End"),
        ("Please scroll all the way down in the terms.", "End"),
        ("Scroll through the terms to their very last line.", "End"),
        ("Scroll to the top of the terms.", "Home"),
        ("Scroll back up to the beginning of the text.", "Home"),
        ("Scroll to the first line of the box.", "Home"),
    ],
)
async def test_a_text_is_scrolled_to_the_end_that_is_asked_for(asked, key):
    assert await best(asked, TERMS) == f'press "Control+{key}"'


MAIL = page(
    ("heading", "Lunch?"),
    ("StaticText", "From: Ann"),
    ("button", "Reply"),
    ("button", "Forward"),
)
WRITING = page(
    ("StaticText", "To"), ("textbox", "To", "=Ann"), ("StaticText", "Message"), ("textbox", "Message"), ("button", "Send"), fingerprint="w"
)
ANSWERS = (
    'Find the email by Ann and reply to them with the text "See you".',
    'Reply "See you" to Ann.',
    'Open the message from Ann and reply saying "See you".',
    'Reply to Ann\'s message with "See you".',
    'Send Ann a reply with the words "See you".',
)


@pytest.mark.parametrize("asked", ANSWERS)
async def test_a_reply_is_opened_and_then_written(asked):
    assert await best(asked, MAIL) == "click [3]"
    assert await best(asked, WRITING, (MAIL, "click [3]")) == 'fill [4] "See you"'


FIGURE = page(("heading", "Quiz"), ("graphics-symbol", "a triangle"), ("button", "Circle"), ("button", "Triangle"), ("button", "Square"))


@pytest.mark.parametrize(
    "asked",
    [
        "Click the button that best describes the figure below.",
        "Press the button for what you see.",
        "What is drawn here? Click the button that names it.",
        "Pick the button with the name of the drawing.",
        "Click the button that fits the picture.",
    ],
)
async def test_a_drawing_is_called_by_its_name(asked):
    assert await best(asked, FIGURE) == "click [4]"


CARD = page(("StaticText", "@ann"), ("menuitem", "Mute @ann"), ("menuitem", "Block @ann"), ("menuitem", "Share"))


@pytest.mark.parametrize(
    "asked",
    [
        'For the user @ann, click on the "Block" button.',
        "Block @ann.",
        "Please block the user @ann.",
        'Choose "Block" in the menu of @ann.',
        "Click Block for @ann.",
    ],
)
async def test_a_label_may_add_whom_it_is_about(asked):
    assert await best(asked, CARD) == "click [3]"


async def test_words_like_those_of_a_description_are_not_always_one():
    dates = page(
        ("StaticText", "Start date"), ("textbox", "Start date"), ("StaticText", "End date"), ("textbox", "End date"), ("button", "Go")
    )
    asked = context('Enter "5" as the start date and "9" as the end date.', dates)
    assert [str(each.action) for each in await LexicalPolicy().propose(asked, ACTIONS, 2)] == ['fill [2] "5"', 'fill [4] "9"']
    prefilled = page(("textbox", "Name", "=Ann"), ("textbox", "Comment"), ("button", "Send"))
    found = await LexicalPolicy().propose(context("Type your comment and press Send.", prefilled), ACTIONS, 50)
    assert not [each for each in found if each.action.name == "fill" and each.action.args[1]]
    assert await best("Transfer 50 dollars to Bob.", page(("button", "Transfer"), ("button", "Cancel"))) == "click [1]"
    assert await best('Type "9" into the field.', page(("StaticText", "3 + 4 ="), ("textbox", ""))) == 'fill [2] "9"'


# Written when the rules stood, and none was changed until all had been tried: 29 were right then, and 9 before there were these rules.
UNTUNED = [
    (
        CITIES,
        'fill [3] "Nor"',
        [
            'Give a city that begins with "Nor" and finishes in "land".',
            'In the city field, write a name starting in "Nor" and ending in "land".',
            'The city starts with "Nor" and ends with "land". Enter it.',
            'Find a city beginning with "Nor" and ending with "land" and type it.',
            'Type in any city with prefix "Nor" and suffix "land", then search.',
        ],
    ),
    (
        STORY,
        'fill [5] "harbour"',
        [
            "Enter word 6 of the paragraph.",
            "What word is in sixth place in the text? Type it in the box.",
            "Read the paragraph and enter its sixth word.",
            "Fill the answer in with the 6th word of the story.",
            "Put the sixth word of this text in the field and check it.",
            "The answer is the sixth word of the sentence.",
        ],
    ),
    (
        NOTES,
        'fill [6] "fig 7"',
        [
            "Paste the text from the second box into the final box.",
            "Repeat what the second text field contains in the third one.",
            "Use the text in Old for Final.",
            "Make Final the same as Old.",
            "Fill Final with what stands in Old.",
            "Copy the value of the second input, and paste it in Final.",
            "Set Final to the text in Old.",
        ],
    ),
    (
        CODE,
        'fill [4] "kestrel moor 4417"',
        [
            "Enter the text you can see on this page into the field.",
            "Type what is written above.",
            "Please copy out the code shown into the box.",
            "Fill in the code you are shown.",
            "Enter the displayed code and continue.",
            "Type the characters that appear on the screen.",
        ],
    ),
    (
        TABLE,
        'fill [8] "teal"',
        [
            "Which colour is the favourite colour? Type it.",
            "Enter the favourite colour from the table.",
            "Find the favourite colour and write it into the field.",
            "Tell us the favourite colour in the answer field.",
            "Put the favourite colour of this person in the box.",
            "Look at the table and enter what it says for favourite colour.",
        ],
    ),
    (
        SUM,
        'fill [3] "7"',
        [
            "Enter the result.",
            "Do the maths and type the result in the box.",
            "Please answer the question in the field.",
            "Type the difference.",
            "Compute and submit.",
            "Prove that you are human: enter the solution.",
        ],
    ),
    (
        ORDER,
        "click [2]",
        [
            "Order for 17 May 2024.",
            "The delivery day should be May 17, 2024.",
            "Enter May 17, 2024 into the day field.",
            "Pick 2024-05-17 in the calendar, then order.",
        ],
    ),
    (
        TERMS,
        'press "Control+End"',
        ["Go to the end of the terms.", "Scroll the terms down until the end.", "Scroll to the bottom.", "Scroll down as far as possible."],
    ),
]


async def test_most_wordings_that_nothing_was_fitted_to_lead_to_the_same_action():
    right = [await best(asked, shape) == wanted for shape, wanted, wordings in UNTUNED for asked in wordings]
    assert len(right) == 44
    assert sum(right) >= 29
