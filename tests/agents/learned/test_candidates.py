"""Candidate actions of the learned agent."""

from __future__ import annotations

import pytest

from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.situation import read_situation
from exact.agents.learned.agent import MOST, wide_candidates
from exact.context import Context
from exact.environments.browser.act.grammar import PAGE_ACTIONS
from exact.observation import Box, Element, Observation
from tests.agents.builtin.pages import context, page


def candidates(given: Context) -> list[str]:
    return [action.key for action in wide_candidates(read_situation(given, given.history), PAGE_ACTIONS)]


def drawn(*elements: tuple[str, Box]) -> Observation:
    return Observation(text="", elements=tuple(Element(id=str(n), role=role, box=box) for n, (role, box) in enumerate(elements, 1)))


@pytest.mark.parametrize(
    ("instruction", "shown", "answer"),
    [
        ("Copy the text into the textbox.", page(("textbox", "", "=lorem ipsum"), ("textbox", "")), 'fill [2] "lorem ipsum"'),
        ('Enter "x9" there.', page(("textbox", "Code")), 'fill [1] "x9"'),
        ("Sort the numbers in increasing order.", page(("listitem", "9"), ("listitem", "4")), "drag [2] to [1]"),
        (
            "Click on the mid-point between the two points.",
            drawn(("graphics-symbol", Box(0, 0, 10, 10)), ("graphics-symbol", Box(100, 40, 10, 10))),
            "click_at 55 25",
        ),
        ("Drag the item down.", drawn(("graphics-symbol", Box(10, 10, 20, 20))), "drag_at 20 20 to 20 60"),
        ("Make the width smaller than its initial size.", drawn(("textbox", Box(10, 10, 90, 40))), "drag_at 98 48 to 78 48"),
        ("Highlight the 1st paragraph.", drawn(("StaticText", Box(10, 10, 90, 40))), "drag_at 10 12 to 101 48"),
        ("Scroll the textarea to the top.", page(("textbox", "", "=lorem ipsum")), "scroll_in [1] up"),
    ],
)
def test_the_right_action_is_among_the_candidates(instruction: str, shown: Observation, answer: str) -> None:
    assert answer in candidates(context(instruction, shown))


def test_those_of_the_lexical_agent_come_first() -> None:
    given = context("Drag Ann to Bob.", page(("listitem", "Ann"), ("listitem", "Bob"), ("button", "Submit")))
    situation = read_situation(given, ())
    lexical = [action.key for action in candidate_actions(situation, PAGE_ACTIONS)]
    assert candidates(given)[: len(lexical)] == lexical


def test_there_is_a_bound() -> None:
    assert len(candidates(context("Click OK.", page(*(("button", f"b{n}") for n in range(400)))))) == MOST
