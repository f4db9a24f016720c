"""Every sentence of a policy's grammar is an answer that parses."""

import random

import pytest

from exact.action import ActionSpace
from exact.agents.parse import parse_action, parse_actions
from exact.agents.policy.llm import LLMPolicy, answer_grammar
from exact.config import PolicyConfig
from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS, python
from exact.errors import ActionError
from exact.models.scripted import ScriptedModel

from ..prompts.states import ACTIONS, SHOE, context, page
from .gbnf import Grammar

HARD = page(("button", 'Say "hi"\\n'), ("textbox", ""), ("link", "été\t🙂\n[9]"), ("link", "y" * 200), ("button", "OK"), ("button", "OK"))
SPACES = {
    "browser": BROWSER_ACTIONS,
    "page": PAGE_ACTIONS,
    "desktop": ELEMENT_ACTIONS,
    "computer_13": COMPUTER_13,
    "pointing": BROWSER_ACTIONS.pointing(),
}


@pytest.mark.parametrize("labels", [False, True], ids=["ids", "labels"])
@pytest.mark.parametrize("thought", [False, True], ids=["action", "answer"])
@pytest.mark.parametrize("space", SPACES)
def test_every_sentence_is_an_answer_that_parses(space, thought, labels):
    grammar, rng = Grammar(answer_grammar(SPACES[space], HARD.elements, labels=labels, thought=thought)), random.Random(1)
    verbs = set()
    for _ in range(600):
        parsed = parse_action(grammar.sentence(rng), SPACES[space], HARD, labels=labels)
        assert not parsed.thought or thought
        verbs.add(parsed.action.name)
    assert verbs == set(SPACES[space].verbs)


@pytest.mark.parametrize("labels", [False, True], ids=["ids", "labels"])
def test_every_sentence_of_a_list_names_one_to_k_actions(labels):
    grammar, rng = Grammar(answer_grammar(BROWSER_ACTIONS, HARD.elements, labels=labels, thought=True, most=3)), random.Random(2)
    counts = [len(parse_actions(grammar.sentence(rng), BROWSER_ACTIONS, HARD, labels=labels)) for _ in range(200)]
    assert set(counts) == {1, 2, 3}


def test_only_elements_that_are_there_and_known_keys_are_in_the_grammar():
    grammar, rng = Grammar(answer_grammar(BROWSER_ACTIONS, SHOE.elements, labels=False, thought=False)), random.Random(3)
    assert {grammar.sentence(rng, "element") for _ in range(99)} == {"[1]", "[2]", "[3]"}
    with pytest.raises(ActionError, match="unknown key"):
        BROWSER_ACTIONS.parse('press "Submit"')
    assert '"Enter"' in answer_grammar(BROWSER_ACTIONS, (), labels=False, thought=False)


def test_without_elements_no_verb_needs_one():
    written = answer_grammar(BROWSER_ACTIONS, (), labels=True, thought=False)
    assert '"click"' not in written and '"press"' in written and "element" not in written


def test_code_has_no_grammar():
    space = ActionSpace([python("Runs it.")])
    assert answer_grammar(space, (), labels=False, thought=False) == ""


@pytest.mark.parametrize(
    ("settings", "begins"),
    [
        ({}, ""),
        ({"grammar": "action"}, 'root ::= "Action: " action\n'),
        ({"grammar": "answer"}, 'root ::= "Thought: "'),
        ({"grammar": "action", "form": "list"}, 'root ::= line ("\\n" line){0,2}\n'),
    ],
)
async def test_a_policy_sends_the_grammar_that_is_configured(settings, begins):
    answer = "Action (9%): click [2]" if "form" in settings else "Action: click [2]"
    model = ScriptedModel(lambda question, sample: answer)
    await LLMPolicy(model, PolicyConfig(samples=1, **settings)).propose(context(), ACTIONS, 3)
    (request,) = model.requests
    assert request.grammar.startswith(begins) and bool(request.grammar) is bool(begins)


@pytest.mark.parametrize("elements", ["id", "label"])
async def test_prompt_grammar_and_parser_name_elements_alike(elements):
    by_label = elements == "label"
    model = ScriptedModel(lambda question, sample: 'Action: click "Buy" button' if by_label else "Action: click [2]")
    policy = LLMPolicy(model, PolicyConfig(samples=1, grammar="action", elements=elements))
    (proposal,) = await policy.propose(context(), ACTIONS, 3)
    (request,) = model.requests
    system, user = (message.parts[0].text for message in request.messages)
    assert proposal.action.key == "click [2]"
    shown, other = ('"Buy" button [2]', '[2] button "Buy"') if by_label else ('[2] button "Buy"', '"Buy" button [2]')
    assert shown in user and other not in user
    assert ('"\\"Buy\\" button [2]"' if by_label else '"[2]"') in request.grammar
    assert ('click "name" role [id]' if by_label else "click [id]") in system
    assert ('click "Blue shoe" link [2]' if by_label else 'click link "Blue shoe"') in user, "steps so far"
