"""Evaluation of states by comparison with each other and with their parent."""

import pytest

from exact.agents.agent import build_agent
from exact.agents.base import evaluate_all
from exact.agents.roles import roles
from exact.config import parse
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from tests.agents.test_siblings import LIST, THREE, after, msgspec, png
from tests.prompts.states import context, page

SETTINGS = parse({"value": {"kind": "comparative", "samples": 1}, "models": {"policy": {"model": "m"}}})


def ranking(*best_first: str) -> ScriptedModel:
    """Prefers the path whose name is earlier in the list; paths without a name come last."""

    def rank(text: str) -> int:
        return next((i for i, words in enumerate(best_first) if words in text), len(best_first))

    def answer(question: Question, sample: int) -> str:
        first, second = question.messages[-1][1].split("The second way.")
        a, b = rank(first), rank(second)
        return f"So.\nBetter: {'neither' if a == b else 'first' if a < b else 'second'}"

    return ScriptedModel(answer)


def comparative(model: ScriptedModel):
    return build_agent(SETTINGS, lambda role: model).value


async def test_a_step_that_helps_is_above_one_half_and_one_that_harms_below():
    helped = await comparative(ranking("Thank you")).evaluate(THREE[0])
    harmed = await comparative(ranking('textbox "Size"')).evaluate(after("click [1]", page(("heading", "Lost"))))
    same = await comparative(ranking()).evaluate(THREE[0])
    assert helped.value > 0.6 and harmed.value < 0.4 and same.value == pytest.approx(0.5)
    assert helped.rationale == "held nearer to the goal than the state before in 100% of the answers"


async def test_siblings_are_ranked_against_each_other():
    model = ranking("Thank you", "Red shoe")
    found = [each.value for each in await evaluate_all(comparative(model), THREE[:2])]
    assert found[0] > found[1] > 0.5 and all(0 <= value <= 1 for value in found)
    assert len(model.requests) == 6, "three states, every pair in both orders"


async def test_a_model_that_always_takes_the_first_says_nothing():
    model = ScriptedModel(lambda question, sample: "Better: first")
    assert [each.value for each in await evaluate_all(comparative(model), THREE[:2])] == pytest.approx([0.5, 0.5])


async def test_a_first_state_is_not_asked_about():
    model = ranking()
    assert (await comparative(model).evaluate(context(history=()))).value == 0.5 and not model.requests
    assert roles(SETTINGS) == ("value",)


async def test_text_over_the_limit_is_left_out_and_both_pictures_are_shown():
    long = page(*((("link", "heading")[i % 2], f"Shoe number {i}") for i in range(900)), screenshot=png(90, 80))
    before = msgspec.structs.replace(LIST, screenshot=png(70, 60))
    way = after("click [2]", long)
    way = msgspec.structs.replace(way, history=(msgspec.structs.replace(way.history[0], observation=before),))
    model = ranking()
    settings = parse({"value": {"kind": "comparative", "samples": 1, "images": True}, "models": {"policy": {"model": "m"}}})
    await build_agent(settings, lambda role: model).value.evaluate(way)
    request = model.requests[0]
    assert any("of 900 lines" in note for note in request.left_out)
    assert len(request.messages[1].parts) == 3 and "both states" in request.messages[1].parts[0].text
