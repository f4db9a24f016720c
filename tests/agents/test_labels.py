"""Actions that name elements by label."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.parse import parse_action, parse_actions
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import ActionError
from exact.observation import Element
from exact.views.labels import label_action, parse_by_label

from ..prompts.states import page

SEEN = page(
    ("button", "Previous"), ("textbox", "Name"), ("button", "OK"), ("link", "OK"), ("listbox", "Colours"), ("textbox", ""),
    ("StaticText", "Previous"), ("graphics-symbol", "dot"), ("heading", "up"), ("link", 'The "best" of\nall'), ("link", "x" * 90),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('click "Previous" button [1]', "click [1]"),
        ('click "Previous" button', "click [1]"),
        ('click "Previous"', "click [1]"),
        ("click “Previous” [1]", "click [1]"),
        ('click button "Previous"', "click [1]"),
        ("click button [1]", "click [1]"),
        ("click [1]", "click [1]"),
        ('click " previous "', "click [1]"),
        ('click "Previous" StaticText', "click [7]"),
        ('click "Previous" button [99]', "click [1]"),
        ('click "OK" link', "click [4]"),
        ('click "OK" link [4]', "click [4]"),
        ('fill "Name" textbox [2] "Ann"', 'fill [2] "Ann"'),
        ('fill "Name" textbox "Ann"', 'fill [2] "Ann"'),
        ('fill "Name" "Ann"', 'fill [2] "Ann"'),
        ('fill "Name" textbox [2] value="Ann"', 'fill [2] "Ann"'),
        ('fill "Name" value = "Ann"', 'fill [2] "Ann"'),
        ("fill [2] value='Ann'", 'fill [2] "Ann"'),
        ('fill textbox [6] "click \\"OK\\" button [3]"', 'fill [6] "click \\"OK\\" button [3]"'),
        ('drag "Previous" to "Colours" listbox', "drag [1] to [5]"),
        ('drag "Previous" button [1] to "dot" graphics-symbol [8]', "drag [1] to [8]"),
        ('scroll_in "Colours" down', "scroll_in [5] down"),
        ('scroll_in "up" up', "scroll_in [9] up"),
        ('click "The \\"best\\" of\\nall" link [10]', "click [10]"),
        (f'click "{"x" * 59}…" link', "click [11]"),
        ('press "Enter"', 'press "Enter"'),
        ("scroll up", "scroll up"),
    ],
)
def test_an_element_may_be_named_by_label_with_or_without_the_id(text, key):
    assert parse_by_label(text, BROWSER_ACTIONS, SEEN).key == key


SHOWN = msgspec.structs.replace(
    page(("textbox", ""), ("combobox", "Sizes"), ("textbox", "Town"), ("button", "Go")),
    text='[1] textbox value="yS8" focused\n[2] combobox "Sizes" value="Large" collapsed focused\n[3] textbox "Town" focused\n',
)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('click "textbox" textbox [1] value="yS8"', "click [1]"),
        ("click [1] textbox value='yS8' focused", "click [1]"),
        ('click [2] combobox "Sizes" value="Large" collapsed', "click [2]"),
        ('fill "Town" textbox [3] "Lima" focused', 'fill [3] "Lima"'),
        ('fill [3] textbox "Town" "Lima" focused', 'fill [3] "Lima"'),
        ('select "Sizes" combobox [2] "Small" collapsed focused', 'select [2] "Small"'),
        ('drag "Town" textbox [3] to "Go" button [4]', "drag [3] to [4]"),
        ('drag "Go" button [4] to "Town" textbox [3] focused', "drag [4] to [3]"),
    ],
)
def test_what_an_elements_line_says_may_be_repeated(text, key):
    assert parse_by_label(text, BROWSER_ACTIONS, SHOWN).key == key


@pytest.mark.parametrize("text", ['click "name" role [4]', 'click "button" widget [4]', 'click "button" button [4]'])
def test_a_word_of_the_form_is_no_name_if_an_id_stands_beside_it(text):
    assert parse_by_label(text, BROWSER_ACTIONS, SHOWN).key == "click [4]"


@pytest.mark.parametrize("text", ['click "name" role [9]', 'click "name" role', 'click "name" button [4]', 'click "link" role [4]'])
def test_a_word_of_the_form_names_nothing_alone(text):
    with pytest.raises(ActionError):
        parse_by_label(text, BROWSER_ACTIONS, SHOWN)


def test_a_word_of_the_form_is_a_name_if_the_page_has_it():
    with pytest.raises(ActionError, match="not 'name'"):
        parse_by_label('click "name" role [1]', BROWSER_ACTIONS, SEEN)


def test_a_second_id_is_no_word_of_an_elements_line():
    seen = msgspec.structs.replace(SHOWN, text='[1] textbox value="yS8" [4]\n[4] button "Go"')
    with pytest.raises(ActionError):
        parse_by_label("click [1] textbox [4]", BROWSER_ACTIONS, seen)


@pytest.mark.parametrize(
    "text",
    [
        'click [2] combobox "Sizes" value="Small" collapsed',
        'click "Town" textbox [3] collapsed',
        'fill "Town" textbox [3] "Lima" focused focused',
        'fill "Town" textbox [3] "Lima" press "Enter"',
        "click [1] textbox focused value='yS8'",
    ],
)
def test_what_an_elements_line_does_not_say_is_no_part_of_an_action(text):
    with pytest.raises(ActionError):
        parse_by_label(text, BROWSER_ACTIONS, SHOWN)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('click "OK"', '\'OK\' names 2 elements: add the id of one of "OK" button [3], "OK" link [4]'),
        ('drag "Previous" to "OK"', "'OK' names 2 elements"),
        ('click "Previous" button [3]', "[3] is \"OK\" button [3], not 'Previous'"),
        ('click "Previos"', "there is no element 'Previos' in the current observation: did you mean \"Previous\" button [1]?"),
        ('click "Previous" link', "there is no link 'Previous'"),
        ("click button [99]", "there is no element [99]"),
        ("click Previous", "does not fit: click takes the label, the role and the id of an element in brackets"),
        ('fill "Name"', "does not fit: fill takes the label, the role and the id of an element in brackets, and a text"),
        ('click "Previous" button [1] [2]', "does not fit"),
        ('tap "Previous"', "unknown action 'tap'"),
        ("", "no action"),
    ],
)
def test_a_label_that_is_ambiguous_unknown_or_another_elements_is_reported(text, told):
    with pytest.raises(ActionError) as caught:
        parse_by_label(text, BROWSER_ACTIONS, SEEN)
    assert told in str(caught.value)


def test_an_answer_is_read_by_label_also_where_ids_are_asked_for():
    answer = 'Thought: so.\nAction: click "Previous" button'
    for labels in (True, False):
        assert parse_action(answer, BROWSER_ACTIONS, SEEN, labels=labels).action.key == "click [1]"
    with pytest.raises(ActionError, match="does not fit: click takes"):
        parse_action('Action: click "OK"', BROWSER_ACTIONS, SEEN)
    with pytest.raises(ActionError, match="no line that begins with `Action:`"):
        parse_action("I click it.", BROWSER_ACTIONS, SEEN, labels=True)
    listed = parse_actions('Action (60%): click "Previous"\nAction (9%): click "OK" link', BROWSER_ACTIONS, SEEN, labels=True)
    assert [one.chosen.action.key for one in listed] == ["click [1]", "click [4]"]


NAMES = st.text(max_size=90)
ROLES = st.sampled_from(["button", "link", "textbox", "graphics-symbol", "StaticText"])


@given(st.lists(st.tuples(ROLES, NAMES), min_size=1, max_size=5), st.data())
def test_every_action_that_is_written_by_label_is_read_as_itself(elements, data):
    seen = page(*elements)
    id = data.draw(st.sampled_from(seen.elements)).id
    for action in (
        BROWSER_ACTIONS.action("click", id),
        BROWSER_ACTIONS.action("fill", id, 'a "b" [1]'),
        BROWSER_ACTIONS.action("drag", id, "1"),
    ):
        assert parse_by_label(label_action(action, seen), BROWSER_ACTIONS, seen) == action


def test_many_elements_of_one_label_are_cut_in_the_error():
    seen = page(*[("button", "Delete")] * 40)
    assert isinstance(seen.elements[0], Element)
    with pytest.raises(ActionError, match=r"names 40 elements: .* and 34 more"):
        parse_by_label('click "Delete"', BROWSER_ACTIONS, seen)
