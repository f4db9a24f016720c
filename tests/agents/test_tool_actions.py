"""Calls of tools in a model's answer: a JSON object behind the verb, on one line or several, and sentences of its grammar."""

from __future__ import annotations

import random
from typing import Literal

import pytest

from exact.action import ActionSpace
from exact.agents.parse import parse_action, parse_actions
from exact.agents.policy.llm import answer_grammar
from exact.environments.tools.tool import function_tool
from exact.errors import ActionError

from ..prompts.states import ACTIONS, SHOE
from .gbnf import Grammar


def find_customer(name: str, limit: int = 3, kinds: list[Literal["person", "firm"]] = [], old: bool = False) -> None:  # noqa: B006
    """Find customers."""


def order(action: str, note: str = "") -> None:
    """Order something."""


SPACE = ActionSpace([*ACTIONS.verbs.values(), function_tool(find_customer).verb, function_tool(order).verb])


@pytest.mark.parametrize(
    "text",
    [
        'Action: find_customer {"name": "Ann"}',
        'Look her up.\n**Action: find_customer {"name": "Ann"}**',
        'Action: find_customer {"name": "Ann", "limit": 3}',
        'Action: find_customer {\n  "name": "Ann",\n  "limit": 3\n}\n',
        'Action:\n```\nfind_customer {"name": "Ann"}\n```',
        'find_customer {"name": "Ann"}',
        '{"thought": "look her up", "action": "find_customer {\\"name\\": \\"Ann\\"}"}',
    ],
)
@pytest.mark.parametrize("labels", [False, True])
def test_a_call_is_read_in_each_form(text: str, labels: bool) -> None:
    assert parse_action(text, SPACE, SHOE, labels=labels).action.key == 'find_customer {"name": "Ann"}'


@pytest.mark.parametrize("said", ["click [2]", "stop", "find_customer"])
def test_an_argument_that_is_called_action_is_none(said: str) -> None:
    assert parse_action(f'Action: order {{"action": "{said}"}}', SPACE, SHOE).action.name == "order"


def test_braces_in_a_quoted_text_that_goes_on_below_are_text() -> None:
    assert parse_action('Action: fill [1] "a {} b\nc"', SPACE, SHOE).action.args[1] == "a {} b\nc"


def test_listed_calls_are_read_with_their_shares() -> None:
    found = parse_actions('Action (70%): find_customer {"name": "Ann"}\nAction (20%): click [2]', SPACE, SHOE)
    assert [(each.chosen.action.key, each.confidence) for each in found] == [('find_customer {"name": "Ann"}', 0.7), ("click [2]", 0.2)]


def test_a_fault_names_the_member_and_the_form() -> None:
    with pytest.raises(
        ActionError,
        match=r"find_customer: Expected `int`, got `str` - at `\$.limit`: it takes .* name is text, limit is whole number \(optional\),",
    ):
        parse_action('Action: find_customer {"name": "Ann", "limit": "many"}', SPACE, SHOE)


def test_every_sentence_of_the_grammar_is_a_call_that_parses() -> None:
    space = ActionSpace([function_tool(find_customer).verb, function_tool(order).verb])
    grammar, rng, seen = Grammar(answer_grammar(space, (), labels=False, thought=False)), random.Random(3), set[str]()
    for _ in range(300):
        seen.add(parse_action(grammar.sentence(rng), space, SHOE).action.name)
    assert seen == {"find_customer", "order"}
