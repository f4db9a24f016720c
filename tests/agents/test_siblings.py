"""Siblings in one request: the request, the parsing of answers, and the value functions that support it."""

import msgspec
import pytest

from exact.agents.base import BatchValueFunction, evaluate_all
from exact.agents.recalibrate import Curve, RecalibratedValue
from exact.agents.siblings import LLMValue
from exact.agents.value.build import CascadeValue, EnsembleValue
from exact.agents.value.controls import ConstantValue
from exact.config import ValueConfig, ViewConfig
from exact.context import Context
from exact.errors import AnswerError
from exact.models.base import Image, Text
from exact.models.scripted import ScriptedModel

from ..prompts.states import ACTIONS, LESSON, LIST, SHOE, context, page
from ..views.test_view import png

BOUGHT = page(("heading", "Thank you"), screenshot=png(300, 200))


def after(action: str, observation=BOUGHT, **fields: object) -> Context:
    step = msgspec.structs.replace(context().history[0], observation=SHOE, action=ACTIONS.parse(action), rationale="")
    return context(observation, history=(*context().history, step), **fields)


THREE = [after("click [2]"), after('fill [3] "42"', LIST), after('stop "no"', SHOE, terminated=True)]


def judging(answer: str) -> tuple[LLMValue, ScriptedModel]:
    model = ScriptedModel(lambda question, sample: answer)
    return LLMValue(model, ValueConfig(samples=2)), model


async def test_one_question_judges_all_of_them():
    value, model = judging("Bought.\nVerdict 1: A\nNot yet.\nVerdict 2: C\nToo soon.\n**Verdict 3:** E")
    found = await evaluate_all(value, THREE)
    assert [each.value for each in found] == [1.0, 0.5, 0.0] and [each.rationale for each in found] == ["Bought.", "Not yet.", "Too soon."]
    (request,) = model.requests
    words = request.messages[1].parts[0].text
    assert request.prompt.startswith("value_siblings@") and request.sampling.n == 2
    assert "Thank you" in words and "Red shoe" in words and "It ends the attempt, " in words and words.count("⟦answer") == 1


async def test_reflections_recalled_for_any_sibling_are_shown_once():
    first, other = (msgspec.structs.replace(LESSON, id=id, kind="value", text=f"Lesson {id}.") for id in ("one", "two"))
    recalled = [(), (first,), (first, other)]
    value, model = judging("Verdict 1: A\nVerdict 2: C\nVerdict 3: E")
    await evaluate_all(value, [msgspec.structs.replace(each, reflections=r) for each, r in zip(THREE, recalled, strict=True)])
    words = model.requests[0].messages[1].parts[0].text
    assert words.count("Lesson one.") == words.count("Lesson two.") == 1


async def test_an_answer_that_omits_a_sibling_is_rejected():
    for answer, says in [
        ("Verdict 1: A", "verdict 2 is missing"),
        ("Verdict 1: A\nVerdict 1: B\nVerdict 2: A\nVerdict 3: A", "verdict 1 has no clear"),
    ]:
        value, model = judging(answer)
        with pytest.raises(AnswerError, match=says):
            await evaluate_all(value, THREE)
        assert len(model.requests) == 3


async def test_states_that_are_no_siblings_are_evaluated_one_by_one():
    value, model = judging("Verdict: B")
    found = await evaluate_all(value, [THREE[0], context()])
    assert [each.value for each in found] == [0.8, 0.8] and len(model.requests) == 2


async def test_many_long_states_share_the_room_and_what_is_missing_is_noted():
    long = page(*((("link", "heading")[i % 2], f"Shoe number {i}") for i in range(900)))
    value, model = judging("\n".join(f"Verdict {i}: C" for i in range(1, 5)))
    await evaluate_all(value, [after(f"click [{i}]", long) for i in range(1, 5)])
    (request,) = model.requests
    assert len(request.messages[1].parts[0].text) < 26_000 and any("of 900 lines" in note for note in request.left_out)


async def test_pictures_go_in_order():
    model = ScriptedModel(lambda question, sample: "Verdict 1: A\nVerdict 2: C")
    shown = [after("click [2]"), after("click [1]", msgspec.structs.replace(LIST, screenshot=png(100, 90)))]
    await LLMValue(model, ValueConfig(samples=1), ViewConfig(images=True)).evaluate_all(shown)
    pictures = [part.data for part in model.requests[0].messages[1].parts if isinstance(part, Image)]
    assert pictures == [png(300, 200), png(100, 90)]


async def test_siblings_that_look_the_same_are_shown_once():
    model = ScriptedModel(lambda question, sample: "Verdict 1: A\nVerdict 2: C\nVerdict 3: C")
    await LLMValue(model, ValueConfig(samples=1), ViewConfig(images=True)).evaluate_all([after(f"click [{i}]") for i in (1, 2, 3)])
    first, *others = model.requests[0].sent()[1].parts[1:]
    assert first == Image(png(300, 200))
    assert others == [Text(f"[Picture {number} is the same as picture 1.]") for number in (2, 3)]


async def test_a_composite_value_function_passes_a_batch_on():
    value, model = judging("Verdict 1: A\nVerdict 2: C\nVerdict 3: E")
    half = Curve(values=(0.0, 1.0), probabilities=(0.0, 0.5))
    assert [each.value for each in await evaluate_all(RecalibratedValue(value, half), THREE)] == [0.5, 0.25, 0.0]
    panel = EnsembleValue({"a": value, "b": ConstantValue(0.0)})
    assert [each.value for each in await evaluate_all(panel, THREE)] == [0.5, 0.25, 0.0]
    assert len(model.requests) == 2 and all(isinstance(each, BatchValueFunction) for each in (panel, value))


async def test_a_cascade_batches_open_siblings_cheaply_and_evaluates_ends_expensively():
    model = ScriptedModel(lambda question, sample: "Verdict 1: A\nVerdict 2: C")
    cascade = CascadeValue(LLMValue(model, ValueConfig(samples=1)), ConstantValue(0.1))
    assert [each.value for each in await evaluate_all(cascade, [THREE[2], *THREE[:2]])] == [0.1, 1.0, 0.5]
    assert len(model.requests) == 1
