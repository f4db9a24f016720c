"""What a model is told when its answer cannot be read."""

from __future__ import annotations

import pytest

from exact.agents.parse import parse_action, parse_argument, parse_grade
from exact.agents.siblings import LLMValue
from exact.agents.value.samples import UNREAD, ValueSample, aggregate, counted, sample_until_precise
from exact.config import ValueConfig
from exact.errors import ActionError, AnswerError
from exact.models.base import ChatRequest, Message, Sampling, Text
from exact.models.scripted import Reply, ScriptedModel
from exact.prompts.ask import ask, whole_sentences

from .states import ACTIONS, SHOE, context

REQUEST = ChatRequest(messages=(Message("system", (Text("Judge."),)), Message("user", (Text("The shoe."),))), sampling=Sampling(), role="r")


async def told(answer: str, parse: object) -> str:
    """Return what the model is told after an answer that cannot be read."""
    model = ScriptedModel(lambda question, sample: answer)
    with pytest.raises((ActionError, AnswerError)):
        await ask(model, REQUEST, parse, seed=1)  # type: ignore[arg-type]
    return model.requests[1].messages[-1].parts[0].text  # type: ignore[union-attr]


async def test_a_judge_is_asked_again_in_one_sentence_that_holds_nothing_to_copy() -> None:
    said = await told("It is done, says the page: Verdict A.", parse_grade)
    assert said == "Answer again: end with one line that holds the word Verdict, a colon, and one letter from A to E."
    with pytest.raises(AnswerError):
        parse_grade(said)


async def test_a_fault_of_an_action_stands_in_a_fence_and_the_form_outside_of_it() -> None:
    said = await told("Action: click [9]", lambda text: parse_action(text, ACTIONS, SHOE))
    fence, form = said.split("⟧\n")[-2:]
    assert "there is no element [9]" in fence and form.startswith("Answer again: write one line with the word Action")
    assert "⟦" not in await told("I would buy it.", lambda text: parse_action(text, ACTIONS, SHOE))


@pytest.mark.parametrize(
    ("text", "read"),
    [("It is bought. The size is", "It is bought."), ("1. It is.\n2. Size", "1. It is."), ("It costs 3.50", ""), ("好。再", "好。")],
)
def test_a_text_that_was_cut_off_counts_up_to_its_last_sentence(text: str, read: str) -> None:
    assert whole_sentences(text) == read


async def test_an_argument_that_was_cut_off_is_not_asked_for_again_and_half_a_line_decides_nothing() -> None:
    model = ScriptedModel(lambda question, sample: Reply(text="The shoe is bought. It is bl", finish="length"))
    assert await ask(model, REQUEST, parse_argument, seed=1, cut=whole_sentences) == ["The shoe is bought."]
    model = ScriptedModel(lambda question, sample: Reply(text="So.\nVerdict: B\nThis is because A", finish="length"))
    assert [each.value for each in await ask(model, REQUEST, parse_grade, seed=1)] == [0.8]
    assert len(model.requests) == 1


def test_samples_that_cannot_be_read_widen_the_uncertainty_and_not_the_value() -> None:
    sure, unsure = ([ValueSample(0.8), ValueSample(0.8)], counted([ValueSample(0.8), ValueSample(0.8)], 4))
    assert (aggregate(sure).value, aggregate(sure).disagreement, aggregate(sure).within) == (0.8, 0.0, 0.0)
    found = aggregate(unsure)
    assert found.value == 0.8 and found.disagreement == pytest.approx((UNREAD / 2) ** 0.5) and found.within > found.disagreement


async def test_one_readable_sample_of_four_draws_more() -> None:
    drawn = list[int]()

    async def draw(number: int, count: int) -> list[ValueSample]:
        drawn.append(count)
        return counted([ValueSample(0.5)], count)

    assert len(await sample_until_precise(draw, ValueConfig(samples=4, most=8, threshold=0.15))) == 2 and drawn == [4, 4]


async def test_a_judges_unreadable_samples_are_counted() -> None:
    texts = iter(("Verdict: B", "Verdict: B", "hm", "hm"))
    model = ScriptedModel(lambda question, sample: next(texts))
    found = await LLMValue(model, ValueConfig(samples=4, most=4)).evaluate(context())
    assert found.samples == (0.8, 0.8) and found.disagreement > 0.1
