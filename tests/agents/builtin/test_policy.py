from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.action import ActionSpace, Parameter, Verb
from exact.agents.builtin.policy import LexicalPolicy
from exact.agents.policy.prior import RandomPolicy
from exact.context import Reflection, Taken
from tests.agents.builtin.pages import ACTIONS, FORM, context, page

TABS = page(("tab", "One", "selected"), ("tab", "Two"), ("tab", "Three"), ("link", "amet"))
MIXED = page(
    ("heading", "Sign in"),
    ("StaticText", "User name"),
    ("textbox", ""),
    ("StaticText", "Password"),
    ("textbox", ""),
    ("link", "Forgot it?"),
    ("button", "Login"),
)
SIGN_IN = 'Enter the username "ann" and the password "x9" and press login.'


async def best(given, k=1):
    return [str(proposal.action) for proposal in await LexicalPolicy().propose(given, ACTIONS, k)]


async def test_named_boxes_are_ticked_before_the_form_is_sent():
    assert await best(context("Select Ann, Cy and click Submit.", FORM), 2) == ["click [1]", "click [3]"]


async def test_the_form_is_sent_when_its_boxes_are_ticked():
    ticked = page(("checkbox", "Ann", "checked"), ("checkbox", "Bob"), ("checkbox", "Cy", "checked"), ("button", "Submit"))
    assert await best(context("Select Ann, Cy and click Submit.", ticked)) == ["click [4]"]


async def test_a_box_that_was_not_asked_for_is_unticked_first():
    ticked = page(("checkbox", "Ann", "checked"), ("checkbox", "Bob", "checked"), ("button", "Submit"))
    assert await best(context("Select Ann and click Submit.", ticked)) == ["click [2]"]


async def test_values_go_into_the_fields_that_text_labels():
    assert await best(context(SIGN_IN, MIXED), 2) == ['fill [3] "ann"', 'fill [5] "x9"']


async def test_an_option_is_selected_by_its_label():
    menu = page(("combobox", "", "=Rome", 0), ("option", "Rome", 1), ("option", "Paris", 1), ("button", "Submit", 0))
    assert await best(context("Select Paris from the list and click Submit.", menu)) == ['select [1] "Paris"']


async def test_tabs_are_opened_while_the_target_is_missing():
    assert await best(context('Find and click on the link "dolor".', TABS)) == ["click [2]"]


async def test_an_action_that_changed_nothing_is_not_repeated():
    assert await best(context('Find and click on the link "dolor".', TABS, (TABS, "click [2]"))) == ["click [3]"]


async def test_enter_sends_a_filled_field_where_no_button_does():
    search = page(("textbox", "Search", "=cats", "focused"), ("StaticText", "Results"))
    assert await best(context('Enter "cats" into the search field.', search)) == ['press "Enter"']


async def test_only_verbs_of_the_environment_are_used():
    only = ActionSpace((Verb(name="click", form=(Parameter.ELEMENT,)),))
    found = await LexicalPolicy().propose(context(SIGN_IN, MIXED), only, 50)
    assert found and {proposal.action.name for proposal in found} == {"click"}


async def test_the_label_of_a_button_is_no_text_to_write():
    notes = page(("textbox", "Notes"), ("button", "Submit"))
    found = await LexicalPolicy().propose(context("Select the colour and press Submit.", notes), ACTIONS, 50)
    assert "fill" not in {proposal.action.name for proposal in found}


async def test_a_refused_action_is_not_proposed_again():
    first = (await best(context("Click the button.", FORM)))[0]
    refused = Taken(observation=FORM, action=ACTIONS.parse(first), error="covered by a dialog")
    assert first not in await best(context("Click the button.", FORM, tried=(refused,)), 20)


@pytest.mark.parametrize("policy", [LexicalPolicy(), RandomPolicy()])
async def test_priors_of_at_most_k_distinct_actions_sum_to_one(policy):
    found = await policy.propose(context(SIGN_IN, MIXED), ACTIONS, 4)
    assert len({proposal.action.key for proposal in found}) == len(found) == 4
    assert sum(proposal.prior for proposal in found) == pytest.approx(1)


@pytest.mark.parametrize(("surprise", "first"), [(-0.8, "click [2]"), (0.8, "click [1]")])
async def test_a_reflection_moves_the_prior_of_the_action_it_speaks_of(surprise, first):
    twins = page(("button", "Save draft"), ("button", "Save copy"))
    lesson = Reflection(
        id="r",
        kind="policy",
        text="",
        instruction="Click save",
        state="",
        action="",
        action_label='click button "Save draft"',
        surprise=surprise,
    )
    assert await best(context("Click save", twins, reflections=(lesson,))) == [first]


@settings(deadline=None)
@given(st.permutations(range(1, 8)))
async def test_renamed_ids_urls_and_titles_rank_the_same(order):
    renamed = tuple(msgspec.structs.replace(e, id=str(order[n])) for n, e in enumerate(MIXED.elements))
    other = msgspec.structs.replace(MIXED, elements=renamed, url="https://elsewhere.test/x?y=1", title="Another page")
    back = {str(new): str(n + 1) for n, new in enumerate(order)}
    ranking = [
        (p.action.name, p.action.elements, round(p.prior, 9)) for p in await LexicalPolicy().propose(context(SIGN_IN, MIXED), ACTIONS, 30)
    ]
    renaming = await LexicalPolicy().propose(context(SIGN_IN, other), ACTIONS, 30)
    assert ranking == [(p.action.name, tuple(back[id] for id in p.action.elements), round(p.prior, 9)) for p in renaming]


async def test_random_draws_are_keyed_by_seed_and_node():
    draws = [
        [p.action.key for p in await RandomPolicy().propose(context(SIGN_IN, MIXED, seed=seed, node=node), ACTIONS, 5)]
        for seed, node in [(1, 1), (1, 1), (1, 2), (2, 1)]
    ]
    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws}) == 3


def test_the_agent_holds_no_name_of_a_benchmark_task():
    import exact.agents.builtin as package
    from exact.benchmarks.miniwob.suite import TASKS

    (folder,) = package.__path__
    source = "".join(path.read_text() for path in Path(folder).rglob("*.py"))
    assert len(source) > 50_000
    assert not [name for name in TASKS if "-" in name and name in source]
