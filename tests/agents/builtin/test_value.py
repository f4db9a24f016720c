import msgspec
import pytest

from exact.agents.builtin.value import LexicalValue
from exact.agents.value.controls import ConstantValue
from exact.context import Reflection
from tests.agents.builtin.pages import FORM, context, page

GOAL = "Select Ann, Cy and click Submit."
HALF = page(("checkbox", "Ann", "checked"), ("checkbox", "Bob"), ("checkbox", "Cy"), ("button", "Submit"), fingerprint="half")
FULL = page(("checkbox", "Ann", "checked"), ("checkbox", "Bob"), ("checkbox", "Cy", "checked"), ("button", "Submit"), fingerprint="full")
LINKS = page(("link", "amet"), ("link", "dolor"), ("link", "sit"))


async def value(*args, **fields):
    return (await LexicalValue().evaluate(context(*args, **fields))).value


async def test_each_part_that_is_done_raises_the_value():
    assert await value(GOAL, FORM) < await value(GOAL, HALF) < await value(GOAL, FULL)


async def test_a_box_that_was_not_asked_for_lowers_the_value():
    wrong = page(("checkbox", "Ann", "checked"), ("checkbox", "Bob", "checked"), ("checkbox", "Cy", "checked"), ("button", "Submit"))
    assert await value(GOAL, wrong) < await value(GOAL, FULL)


@pytest.mark.parametrize(("state", "low", "high"), [(FORM, 0.0, 0.2), (HALF, 0.0, 0.2), (FULL, 0.9, 1.0)])
async def test_sending_a_form_is_as_good_as_what_was_filled_in(state, low, high):
    assert low <= await value(GOAL, state, (state, "click [4]"), terminated=True) <= high


@pytest.mark.parametrize(("action", "low", "high"), [("click [2]", 0.9, 1.0), ("click [1]", 0.0, 0.3)])
async def test_an_end_by_clicking_is_judged_by_the_element_clicked(action, low, high):
    assert low <= await value('Click on the link "dolor".', LINKS, (LINKS, action), terminated=True) <= high


async def test_a_target_that_appeared_raises_the_value():
    hidden = page(("tab", "One", "selected"), ("tab", "Two"))
    shown = page(("tab", "One"), ("tab", "Two", "selected"), ("link", "dolor"), fingerprint="two")
    goal = 'Switch between the tabs to find and click on the link "dolor".'
    assert await value(goal, shown, (hidden, "click [2]")) > await value(goal, hidden) + 0.1


async def test_the_rationale_names_what_is_done_and_what_is_open():
    told = (await LexicalValue().evaluate(context(GOAL, HALF))).rationale
    done, _, rest = told.partition("Open:")
    assert "Ann" in done and "Cy" in rest and "Ann" not in rest


async def test_a_state_without_actions_left_is_worth_nothing():
    assert await value(GOAL, FULL, steps_left=0) < 0.1


async def test_renamed_ids_urls_and_titles_are_worth_the_same():
    renamed = tuple(msgspec.structs.replace(e, id=str(90 - n)) for n, e in enumerate(FULL.elements))
    other = msgspec.structs.replace(FULL, elements=renamed, url="https://elsewhere.test/", title="Another")
    assert await value(GOAL, FULL, (FULL, "click [4]"), terminated=True) == await value(GOAL, other, (other, "click [87]"), terminated=True)


async def test_a_value_reflection_lowers_the_states_its_action_leads_to():
    lesson = Reflection(
        id="r", kind="value", text="", instruction=GOAL, state="", action="", action_label='click button "Submit"', surprise=-0.6
    )
    ended = {"terminated": True}
    with_lesson = await value(GOAL, FULL, (FULL, "click [4]"), reflections=(lesson,), **ended)
    assert with_lesson < await value(GOAL, FULL, (FULL, "click [4]"), **ended) - 0.05


async def test_a_constant_value_knows_nothing():
    values = {(await ConstantValue(0.3).evaluate(context(GOAL, state))).value for state in (FORM, HALF, FULL)}
    assert values == {0.3}
    with pytest.raises(ValueError, match="not a probability"):
        ConstantValue(1.2)


WRITTEN = page(("StaticText", "From: Ann"), ("textbox", "", "=Hi there"), ("image", ""), fingerprint="written")
ANSWER = 'Open the email by Ann and reply with the text "Hi there".'


async def test_an_end_after_all_parts_are_done_is_worth_more_than_going_on():
    steps = ((page(("StaticText", "Ann"), ("button", "Reply")), "click [2]"),)
    ended = await value(ANSWER, WRITTEN, *steps, (WRITTEN, "click [3]"), terminated=True)
    assert ended > await value(ANSWER, WRITTEN, *steps) > 0.5


async def test_an_end_that_leaves_parts_open_came_too_early():
    goal = 'Click "One", click "Two" and click "Three".'
    three = page(("button", "One"), ("button", "Two"), ("button", "Three"))
    assert await value(goal, three, (three, "click [1]"), terminated=True) < 0.4


async def test_an_action_on_a_record_other_than_the_named_one_lowers_the_value():
    goal = 'For the user Ann, click on the "Embed" button.'
    own, other = (page(("StaticText", name), ("button", "Embed")) for name in ("Ann", "Bob"))
    assert (
        await value(goal, other, (other, "click [2]"), terminated=True) < 0.6 < await value(goal, own, (own, "click [2]"), terminated=True)
    )


async def test_a_record_that_was_opened_by_its_name_stays_the_one_named():
    names = page(("listitem", "first"), ("StaticText", "Ann", 1), ("listitem", "second"), ("StaticText", "Bob", 1))
    opened = page(("button", "Embed"), fingerprint="opened")
    goal = 'For the user Ann, click on the "Embed" button.'
    assert await value(goal, opened, (names, "click [2]")) > await value(goal, opened, (names, "click [4]")) + 0.05


async def test_more_open_parts_than_actions_left_lower_the_value():
    assert await value(GOAL, HALF, steps_left=1) < 0.5 * await value(GOAL, HALF, steps_left=2)


async def test_a_text_in_a_field_of_another_name_is_less_surely_right():
    goal = "Find the email by Ann and send it to Bob."
    right, wrong = (page(("textbox", label, "=Bob"), ("StaticText", "Ann")) for label in ("to:", "subject:"))
    assert await value(goal, wrong) < await value(goal, right) - 0.1


async def test_where_nothing_asked_for_is_seen_an_end_beside_what_is_named_is_better_than_one_elsewhere():
    records = page(
        ("listitem", "first"),
        ("StaticText", "Ann", 1),
        ("image", "", 1),
        ("listitem", "second"),
        ("StaticText", "Bob", 1),
        ("image", "", 1),
    )
    goal = "Get rid of my message from Ann."
    near, far = [await value(goal, records, (records, f"click [{n}]"), terminated=True) for n in (3, 6)]
    assert near > far


async def test_words_of_the_instruction_that_were_met_count_where_its_grammar_is_not_understood():
    goal = "Penni needs what Ann wrote, kindly."
    typed, blank = (page(("StaticText", "From: Ann"), ("textbox", "", held)) for held in ("=Penni", "="))
    assert await value(goal, typed) > await value(goal, blank)


async def test_an_action_on_another_element_of_its_kind_lowers_the_value():
    records = page(
        ("listitem", "first"),
        ("StaticText", "@ann", 1),
        ("image", "", 1),
        ("listitem", "second"),
        ("StaticText", "@bob", 1),
        ("image", "", 1),
    )
    opened = page(*((e.role, e.name, e.depth) for e in records.elements), ("menuitem", "Block"), fingerprint="menu")
    goal = 'For the user @ann, click on the "Block" button.'
    own, other = [await value(goal, opened, (records, f"click [{n}]"), (opened, "click [7]"), terminated=True) for n in (3, 6)]
    assert own > other + 0.2


async def test_the_fewer_actions_are_left_the_less_a_state_is_worth():
    values = [await value(GOAL, FORM, steps_left=left) for left in (3, 4, 9)]
    assert values == sorted(values) and values[0] < values[-1]


async def test_with_all_done_and_one_action_left_the_end_is_worth_more_than_going_on():
    goal = 'Find Ann and reply with "Hi there".'
    step = (page(("button", "Reply")), "click [1]")
    written = page(("textbox", "subject:", "=Hi there"), ("image", ""), fingerprint="written")
    ended = await value(goal, written, step, (written, "click [2]"), terminated=True, steps_left=0)
    assert ended > await value(goal, written, step, steps_left=1)
