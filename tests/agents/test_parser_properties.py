"""For any model answer, a parser returns what the answer contains in its form or raises its own error, and runs nothing."""

from __future__ import annotations

import builtins
import random
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from exact.agents.parse import parse_action, parse_actions, parse_argument, parse_check_answers, parse_checks, parse_grade, parse_preference
from exact.agents.value.samples import SCALES
from exact.errors import ActionError, AnswerError
from exact.reflection.llm import parse_reflection
from tests.prompts.states import ACTIONS, SHOE

T = TypeVar("T")

OTHERS = (
    "\nAction (70%): click [3]", "\nAction (7000000%): click [2]", "\nAction (%): scroll up", "\nCheck 1: yes \"Buy\"", "\nCheck 2: no",
    "\nCheck 1: perhaps", f"\nCheck {'9' * 5000}: yes", "\nCheck ²: yes", "\nBetter: first", "\nBetter: second", "\nBetter: none",
)  # fmt: skip

STARTS, ENDS = ("", "\n", "**", "`", "> ", "\n- "), ("", "\n", "**", "`", ".", " or B")
ACTIONS_WRITTEN = (
    "click [3]",
    "click [99]",
    "click [a]",
    'fill [3] "4\\"2"',
    'fill [3] "4"2"',
    "fill [3] 'x'",
    "scroll up",
    "scroll left",
    'stop "done"',
    "",
    "__import__('os').system('touch /tmp/owned')",
    "click [2]; click [3]",
    "CLICK [2]",
    'fill [3] "🙂\\n"',
    "click [٣]",
)
PROSE = (
    "The goal names it.",
    "```",
    "```json",
    "**",
    "> ",
    "Thought: ",
    "<think>",
    "</think>",
    "\n",
    " ",
    "\t",
    '"',
    "'",
    "\\",
    "\x00",
    "\u202e",
    "⟦/observation 1a2b3c4d⟧",
    "Verdict: A",
    "Action:",
    "Expected: x",
    "Real: y",
    "Lesson: When z, do w.",
    "{",
    "}",
    "\ud800",
    "action : ",
    "#",
)
ANSWERS = 10_000


@pytest.fixture(autouse=True)
def nothing_is_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: object) -> None:
        raise AssertionError("a model's text was evaluated")

    for name in ("eval", "exec"):
        monkeypatch.setattr(builtins, name, refused)


def answer(dice: random.Random) -> str:
    """Up to six parts: prose, half-formed lines, lines in the form, any characters at all."""
    return "".join(_part(dice) for _ in range(dice.randrange(7)))


def _part(dice: random.Random) -> str:
    match dice.randrange(6):
        case 0 | 1:
            return dice.choice(PROSE)
        case 2:
            return f"{dice.choice(STARTS)}Action: {dice.choice(ACTIONS_WRITTEN)}{dice.choice(ENDS)}"
        case 3:
            return f"\nVerdict: {dice.choice('ABCDEFabcde1')}{dice.choice(ENDS)}"
        case 4:
            return dice.choice(OTHERS)
        case _:
            return "".join(chr(dice.randrange(0x11000)) for _ in range(dice.randrange(20)))


def parsed(parse: Callable[[str], T], seed: int) -> Iterator[tuple[str, T]]:
    """Return the answers that parse, with the results. Errors other than the parsers' own propagate."""
    dice = random.Random(seed)
    for _ in range(ANSWERS):
        text = answer(dice)
        try:
            yield text, parse(text)
        except (ActionError, AnswerError) as error:
            assert str(error)


def test_a_parsed_action_is_admitted_by_the_state_and_present_in_the_answer() -> None:
    found = list(parsed(lambda text: parse_action(text, ACTIONS, SHOE), 1))
    for text, chosen in found:
        assert ACTIONS.parse(chosen.action.key) == chosen.action and chosen.action.name in text.lower()
        assert all(SHOE.element(id) is not None for id in chosen.action.elements)
    assert ANSWERS / 100 < len(found) < ANSWERS / 2


def test_a_parsed_grade_is_present_in_the_answer() -> None:
    found = list(parsed(parse_grade, 2))
    worth = {SCALES["even"].value(letter) for letter in "ABCDE"}
    assert all(judged.value in worth and "verdict" in text.lower() for text, judged in found)
    assert len(found) > ANSWERS / 100


def test_listed_actions_are_distinct_ones_that_the_state_admits() -> None:
    found = list(parsed(lambda text: parse_actions(text, ACTIONS, SHOE), 4))
    for _, listed in found:
        keys = [one.chosen.action.key for one in listed]
        assert len(set(keys)) == len(keys) > 0 and all(0 <= one.confidence <= 1 for one in listed)
    assert len(found) > ANSWERS / 100


@pytest.mark.parametrize(
    "parse",
    [parse_argument, parse_checks, lambda text: parse_check_answers(text, 2), parse_preference],
    ids=["argument", "checks", "met", "better"],
)
def test_the_other_parsers_give_something_or_their_own_error(parse: Callable[[str], object]) -> None:
    found = list(parsed(parse, 5))
    assert found and all(said is not None for _, said in found)


def test_a_parsed_reflection_has_all_fields() -> None:
    parts = ("Expected: a\n", "Real: b\n", "Lesson: When c, d.\n", "", "x ")
    dice = random.Random(3)
    texts = ["".join(dice.sample(parts, 5)) + answer(dice) for _ in range(ANSWERS // 2)]
    found = []
    for text in [*texts, *(answer(dice) for _ in range(ANSWERS // 2))]:
        try:
            found.append(parse_reflection(text))
        except AnswerError as error:
            assert str(error)
    assert found and all(all(written) for written in found)


@pytest.mark.parametrize("part", ["action", "verdict", "lesson"])
def test_the_generated_answers_hold_good_ones_and_bad_ones(part: str) -> None:
    """Check that the properties above test both kinds."""
    good = {"action": "x\nAction: click [3]", "verdict": "x\nVerdict: B", "lesson": "Expected: a\nReal: b\nLesson: When c, d."}[part]
    parse = {"action": lambda text: parse_action(text, ACTIONS, SHOE), "verdict": parse_grade, "lesson": parse_reflection}[part]
    assert parse(good)
    with pytest.raises((ActionError, AnswerError)):
        parse(good * 2 if part != "verdict" else good + "\nVerdict: C")
