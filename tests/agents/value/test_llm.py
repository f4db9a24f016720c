import msgspec
import pytest

from exact.agents.siblings import LLMValue
from exact.agents.value.build import build_value_function
from exact.config import ValueConfig, ViewConfig, parse
from exact.errors import AnswerError, ModelError
from exact.models.base import Sampling
from exact.models.scripted import Reply, ScriptedModel
from tests.prompts.states import ACTIONS, LIST, SHOE, context, page


def samples(*texts: str | Reply) -> ScriptedModel:
    return ScriptedModel(lambda question, sample: texts[sample % len(texts)])


async def test_the_value_is_the_mean_of_the_grades_that_parse():
    model = samples("fine\nVerdict: A", "open\nVerdict: C", "half\nVerdict: C", "who knows")
    got = await LLMValue(model, ValueConfig(samples=4, threshold=0.5)).evaluate(context())
    assert got.samples == (1.0, 0.5, 0.5) and got.value == pytest.approx(2 / 3)
    assert got.disagreement == pytest.approx(0.25) and got.rationale == "open"


async def test_differing_grades_trigger_more_samples_and_agreeing_ones_do_not():
    apart, agreed, single = samples("Verdict: A", "Verdict: E"), samples("Verdict: B"), samples("Verdict: A")
    await LLMValue(apart, ValueConfig(samples=2, threshold=0.1, most=7)).evaluate(context())
    await LLMValue(agreed, ValueConfig(samples=2, threshold=0.1, most=7)).evaluate(context())
    await LLMValue(single, ValueConfig(samples=1, threshold=0.0, most=7)).evaluate(context())
    assert [request.sampling.n for request in apart.requests] == [2, 2, 2, 1]
    assert len({request.draw for request in apart.requests}) == 4
    assert len(agreed.requests) == len(single.requests) == 1


async def test_a_stop_with_an_answer_is_judged_as_such():
    model = samples("Verdict: D")
    last = msgspec.structs.replace(context().history[0], observation=SHOE, action=ACTIONS.parse('stop "Size 42 costs ⟦9⟧"'))
    ended = context(SHOE, terminated=True, history=(*context().history, last))
    await LLMValue(model, ValueConfig()).evaluate(ended)
    words = model.requests[0].messages[1].parts[0].text
    assert ended.answer == "Size 42 costs ⟦9⟧" and "It gave this answer" in words and "\nSize 42 costs [9]\n" in words
    assert context(history=(last,)).answer == "" == context(terminated=True).answer


async def test_agreement_is_no_disagreement():
    got = await LLMValue(samples("Verdict: E"), ValueConfig(samples=3)).evaluate(context())
    assert (got.value, got.disagreement) == (0.0, 0.0)


async def test_a_value_is_never_made_up():
    model = samples("it looks good", Reply(text="Verdict: A", finish="length"))
    with pytest.raises(AnswerError, match="asked 3 times"):
        await LLMValue(model, ValueConfig(samples=2)).evaluate(context())
    assert [request.attempt for request in model.requests] == [0, 1, 2]


async def test_the_error_goes_back_to_the_judge():
    model = ScriptedModel(lambda question, sample: "Verdict: B" if "A to E" in question.messages[-1][1] else "Verdict: 9")
    assert (await LLMValue(model, ValueConfig(samples=1)).evaluate(context())).value == 0.8


async def test_an_ended_attempt_is_judged_from_before_its_end():
    model = samples("Verdict: D")
    last = msgspec.structs.replace(context().history[0], observation=SHOE, action=ACTIONS.parse('stop "bought"'))
    await LLMValue(model, ValueConfig()).evaluate(context(SHOE, terminated=True, history=(*context().history, last)))
    words = model.requests[0].messages[1].parts[0].text
    assert '2. stop "bought" -- ended the attempt' in words and "The state before it:" in words and "The state now:" not in words


async def test_a_step_that_changed_nothing_is_reported():
    model = samples("Verdict: D")
    await LLMValue(model, ValueConfig()).evaluate(context(LIST))
    assert '1. click link "Blue shoe" -- nothing changed' in model.requests[0].messages[1].parts[0].text


async def test_the_request_is_the_judges():
    model = samples("Verdict: D")
    judge = LLMValue(model, ValueConfig(samples=2), ViewConfig(images=True), sampling=Sampling(temperature=0.1))
    await judge.evaluate(context(msgspec.structs.replace(SHOE, screenshot=b"png"), node=5))
    (request,) = model.requests
    assert (request.role, request.node, request.sampling.n, request.sampling.temperature) == ("value", 5, 2, 0.1)
    assert request.prompt.startswith("value@7:") and request.messages[1].parts[1].data == b"png"


@pytest.mark.parametrize("kind", ["llm", "single_debate", "rubric", "logprob", "trained"])
async def test_every_judge_can_be_shown_changes(kind):
    filled = page(("heading", "Blue shoe"), ("button", "Buy"), ("textbox", "Size: 42"), url="http://shop.test/blue")
    step = msgspec.structs.replace(context().history[0], observation=SHOE, action=ACTIONS.parse('fill [3] "42"'))
    model = samples("Check 1: Is it bought?")
    value = build_value_function(
        parse({"models": {"policy": {"model": "scripted"}}}), ValueConfig(kind=kind, changes=True), lambda role: model, None
    )
    with pytest.raises(ModelError):  # no judge can read that as a grade
        await value.evaluate(context(filled, history=(*context().history, step)))
    assert any("Then this step:" in request.messages[1].parts[0].text for request in model.requests)
