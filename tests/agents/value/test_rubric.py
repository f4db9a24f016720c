import asyncio

import msgspec
import pytest

from exact.agents.value.rubric import RubricValue
from exact.config import ValueConfig, ViewConfig
from exact.errors import AnswerError
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from tests.prompts.states import LESSON, LIST, SHOE, apart, context, page
from tests.views.test_view import png

THE_SAME = msgspec.structs.replace(LIST, fingerprint=SHOE.fingerprint, html="<a>Blue shoe</a>")
CHECKS = "Check 1: Is the blue shoe open?\nCheck 2: Is the size 42?"


def checker(*answers: str) -> ScriptedModel:
    def answer(question: Question, sample: int) -> str:
        return CHECKS if "Write the checks." in question.text else answers[sample % len(answers)]

    return ScriptedModel(answer)


def rubric(model: ScriptedModel, **settings: object) -> RubricValue:
    own, view = apart({"samples": 1, **settings})
    return RubricValue(model, ValueConfig(kind="rubric", **own), view)


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
    await RubricValue(model, ValueConfig(kind="rubric", samples=1), ViewConfig(observation_tokens=300)).evaluate(context(history=(start,)))
    assert "of 600 lines" in model.requests[0].left_out[0] and model.requests[0].node == 0


async def test_a_step_may_be_quoted():
    found = await rubric(checker("Check 1: yes “click link 'Blue shoe'”\nCheck 2: no")).evaluate(context())
    assert found.value == 0.5


@pytest.mark.parametrize(
    "quoted",
    [
        "URL: http://shop.test/blue",
        "Other tab 1: http://shop.test/cart",
        "Downloaded: report.pdf (9 bytes)",
        "[2] button [Buy] now",
        '<b class="sum">42</b>',
        '1. click link "Blue shoe" -- nothing changed',
    ],
)
async def test_any_line_of_the_state_or_the_steps_that_the_prompt_shows_may_be_quoted(quoted: str):
    seen = msgspec.structs.replace(
        SHOE,
        text="[2] button 【Buy】 now",
        tabs=("http://shop.test/cart",),
        downloads=("report.pdf (9 bytes)",),
        html='<b class="sum">42</b>',
    )
    shown = context(seen, history=(msgspec.structs.replace(context().history[0], observation=THE_SAME),))
    model = checker(f'Check 1: yes "{quoted}"\nCheck 2: no')
    assert (await rubric(model, html=True).evaluate(shown)).value == 0.5
    assert quoted in model.requests[1].messages[1].parts[0].text  # type: ignore[union-attr]


async def test_a_thought_of_the_agent_shows_nothing():
    found = await rubric(checker('Check 1: yes "The goal names the blue shoe"\nCheck 2: no')).evaluate(context())
    assert found.value == 0.0


async def test_quotations_from_a_screenshot_shown_alone_are_not_checked():
    answer, shot = 'Check 1: yes "Total 42"\nCheck 2: no', context(msgspec.structs.replace(SHOE, screenshot=png(30, 20)), history=())
    assert (await rubric(checker(answer), images=True, text=False).evaluate(shot)).value == 0.5
    assert (await rubric(checker(answer), images=True).evaluate(shot)).value == 0.0


async def test_the_request_for_checks_does_not_depend_on_recalled_reflections():
    asked = []
    for lesson in ("Open the shoe first.", "Fill the size first."):
        value = checker("Check 1: no\nCheck 2: no")
        recalled = msgspec.structs.replace(LESSON, kind="value", text=lesson)
        await rubric(value).evaluate(context(reflections=(recalled,), node=len(asked)))
        asked.append(value.requests[0])
        assert lesson in value.requests[1].messages[1].parts[0].text  # type: ignore[union-attr]
    assert asked[0] == asked[1]


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
async def test_an_answer_with_an_open_check_is_rejected(answer: str):
    with pytest.raises(AnswerError):
        await rubric(checker(answer)).evaluate(context())
