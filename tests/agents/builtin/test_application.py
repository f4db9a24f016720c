"""The built-in agent in an application, whose attempts only the agent ends."""

from functools import partial

import msgspec

from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.builtin.value import LexicalValue
from tests.agents.builtin import pages as builtin_pages
from tests.agents.builtin.pages import ACTIONS, page

context = partial(builtin_pages.context, application=True)
HOME = page(("link", "News"), ("link", "Boats"), ("textbox", "Search"), ("button", "Search"), fingerprint="home")
BOATS = page(
    ("link", "News"),
    ("link", "Boats"),
    ("heading", "Boats"),
    ("link", "The Anna"),
    ("row", ""),
    ("rowheader", "Built by:", 1),
    ("cell", "ole", 1),
    fingerprint="boats",
)
ASKED = "Who built the boats?"
FORM = page(("heading", "New berth"), ("textbox", "Name:"), ("button", "Add berth"), ("button", "Cancel"), fingerprint="form")
FILLED = page(("heading", "New berth"), ("textbox", "Name:", "=North"), ("button", "Add berth"), ("button", "Cancel"), fingerprint="filled")
ADDED = page(("heading", "Berths"), ("link", "North"), fingerprint="added")
ADD = "Add a berth with the name North."
SURE = page(("heading", "Delete berth North"), ("button", "Yes, delete it"), ("link", "No, don't delete it"), fingerprint="sure")


async def best(given, k=1):
    return [str(proposal.action) for proposal in await LexicalPolicy().propose(given, ACTIONS, k)]


async def value(given):
    return (await LexicalValue().evaluate(given)).value


async def test_a_question_is_answered_where_the_page_says_it_and_not_before():
    assert await best(context(ASKED, BOATS, (HOME, "click [2]"))) == ['stop "ole"']
    assert not any(each.startswith("stop") for each in await best(context(ASKED, HOME)))


async def test_a_page_that_answers_is_worth_more_than_one_that_does_not_and_the_answer_more_than_the_page():
    there = context(ASKED, BOATS, (HOME, "click [2]"))
    answered = context(ASKED, BOATS, (HOME, "click [2]"), (BOATS, 'stop "ole"'), terminated=True)
    wrong = context(ASKED, BOATS, (HOME, "click [2]"), (BOATS, 'stop "The Anna"'), terminated=True)
    assert await value(context(ASKED, HOME)) < await value(there) < await value(answered)
    assert await value(wrong) < await value(answered)


async def test_that_there_is_none_is_believed_the_more_the_more_was_looked_at():
    asked = "Which boat is a whaler? Answer with its name, or N/A if there is none."
    empty = page(("heading", "Boats"), fingerprint="none")
    early, late = (context(asked, empty, *[(empty, "go_back")] * n, (empty, 'stop "N/A"'), terminated=True) for n in (0, 3))
    assert await value(early) < await value(late)


async def test_a_field_gets_what_is_given_for_it_then_the_form_is_sent_then_the_attempt_ends():
    assert await best(context(ADD, FORM)) == ['fill [2] "North"']
    assert await best(context(ADD, FILLED, (FORM, 'fill [2] "North"'))) == ["click [3]"]
    assert await best(context(ADD, ADDED, (FORM, 'fill [2] "North"'), (FILLED, "click [3]"))) == ['stop ""']


async def test_a_form_that_was_sent_half_empty_ends_nothing():
    assert await best(context(ADD, ADDED, (FORM, "click [3]"))) != ['stop ""']


async def test_the_button_of_the_verb_is_pressed_where_the_thing_is_named_and_no_other():
    assert await best(context("Delete the berth North.", SURE), 1) == ["click [2]"]
    assert await best(context("Delete the berth North.", ADDED, (SURE, "click [2]"))) == ['stop ""']


async def test_a_request_for_confirmation_does_not_end_the_task():
    asks = page(("heading", "Delete berth North"), ("button", "Delete berth"), fingerprint="first")
    assert await best(context("Delete the berth North.", SURE, (asks, "click [2]"))) == ["click [2]"]


async def test_a_page_that_was_asked_for_ends_it_once_its_heading_says_so():
    headed = page(("heading", "The Anna"), ("link", "Boats"), fingerprint="anna")
    assert await best(context("Open the page of The Anna.", headed, (BOATS, "click [4]"))) == ['stop ""']
    assert await best(context("Open the page of The Anna.", BOATS, (HOME, "click [2]"))) == ["click [4]"]


async def test_a_missing_target_is_searched_for_and_the_search_is_sent():
    asked = "How many masts has the Anna?"
    some = await best(context(asked, HOME), 6)
    assert 'fill [3] "Anna"' in some
    written = page(("link", "News"), ("link", "Boats"), ("textbox", "Search", "=Anna"), ("button", "Search"), fingerprint="written")
    assert await best(context(asked, written, (HOME, 'fill [3] "Anna"'))) == ["click [4]"]


async def test_boxes_that_an_application_has_ticked_are_left_alone():
    ticked = page(("checkbox", "Show comments", "checked"), ("link", "Boats"))
    assert await best(context("Open the page Boats.", ticked)) == ["click [2]"]
    assert await best(builtin_pages.context("Select nothing.", ticked)) == ["click [1]"]


async def test_other_ids_and_other_addresses_change_nothing():
    def renamed(seen):
        elements = tuple(msgspec.structs.replace(each, id=f"x{each.id}") for each in seen.elements)
        return msgspec.structs.replace(seen, elements=elements, url="http://elsewhere/", title="Other")

    plain = await LexicalPolicy().propose(context(ASKED, BOATS, (HOME, "click [2]")), ACTIONS, 20)
    other = await LexicalPolicy().propose(context(ASKED, renamed(BOATS), (renamed(HOME), "click [x2]")), ACTIONS, 20)
    assert [(each.prior, each.rationale) for each in plain] == [(each.prior, each.rationale) for each in other]
    assert [str(each.action).replace("[", "[x") for each in plain] == [str(each.action) for each in other]


async def test_a_page_that_sets_its_own_task_is_never_left_by_an_answer():
    some = await best(builtin_pages.context(ASKED, BOATS, (HOME, "click [2]")), 50)
    assert 'stop "ole"' not in some
