import asyncio

import msgspec
import pytest

from exact.agents.value.rubric import RubricValue
from exact.config import ValueConfig
from exact.errors import AnswerError
from exact.models.script import Question
from exact.models.scripted import ScriptedModel

from ..prompts.states import SHOE, context, page

CHECKS = "Check 1: Is the blue shoe open?\nCheck 2: Is the size 42?"


def checker(*answers: str) -> ScriptedModel:
    def answer(question: Question, sample: int) -> str:
        return CHECKS if "Write the checks." in question.text else answers[sample % len(answers)]

    return ScriptedModel(answer)


def rubric(model: ScriptedModel, **settings: object) -> RubricValue:
    return RubricValue(model, ValueConfig(kind="rubric", **{"samples": 1, **settings}))  # type: ignore[arg-type]


async def test_the_value_is_the_share_of_the_checks_that_are_met():
    found = await rubric(checker('Check 1: yes "heading Blue shoe"\nCheck 2: no')).evaluate(context())
    assert found.value == 0.5 and found.rationale == "Is the blue shoe open? yes; Is the size 42? no"


async def test_a_yes_that_quotes_what_is_not_there_is_no():
    found = await rubric(checker('Check 1: yes "heading Blue shoe"\nCheck 2: yes "Size: 42"')).evaluate(context())
    assert found.value == 0.5 and "what it quotes is not there" in found.rationale


async def test_a_yes_without_a_quotation_counts_only_where_a_picture_was_shown():
    answer = "Check 1: yes\nCheck 2: no"
    assert (await rubric(checker(answer)).evaluate(context())).value == 0.0
    assert (await rubric(checker(answer), images=True).evaluate(context())).value == 0.5


async def test_the_start_in_the_checks_prompt_fits_and_what_is_missing_is_noted():
    model = ScriptedModel(lambda question, sample: "Check 1: no" if "The checks:" in question.text else "Check 1: Is it so?")
    long = page(*((("link", "heading")[i % 2], f"Shoe number {i}") for i in range(600)))
    start = msgspec.structs.replace(context().history[0], observation=long)
    await RubricValue(model, ValueConfig(kind="rubric", samples=1, observation_tokens=300)).evaluate(context(history=(start,)))
    assert "of 600 lines" in model.requests[0].left_out[0] and model.requests[0].node == 0


async def test_a_step_may_be_quoted():
    found = await rubric(checker("Check 1: yes “click link 'Blue shoe'”\nCheck 2: no")).evaluate(context())
    assert found.value == 0.5


async def test_the_checks_of_a_task_are_written_once():
    model = checker("Check 1: no\nCheck 2: no")
    value = rubric(model)
    await asyncio.gather(*(value.evaluate(context(SHOE, node=node)) for node in range(4)))
    assert sum("Write the checks." in request.messages[1].parts[0].text for request in model.requests) == 1  # type: ignore[union-attr]


async def test_checks_that_could_not_be_had_are_asked_for_again():
    failing = [True]

    def answer(question: Question, sample: int) -> str:
        if "Write the checks." in question.text:
            return "none" if failing[0] else CHECKS
        return "Check 1: no\nCheck 2: no"

    value = rubric(ScriptedModel(answer))
    with pytest.raises(AnswerError):
        await value.evaluate(context())
    failing[0] = False
    assert (await value.evaluate(context())).value == 0.0


@pytest.mark.parametrize("answer", ["Check 1: no", "Check 1: no\nCheck 1: no", "Check 1: maybe\nCheck 2: no", "fine"])
async def test_an_answer_that_leaves_a_check_open_is_no_judgement(answer: str):
    with pytest.raises(AnswerError):
        await rubric(checker(answer)).evaluate(context())
