import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.agent import build_agent
from exact.config import parse
from exact.context import Argument, Evaluation
from exact.errors import AnswerError
from exact.models.base import Sampling
from exact.models.scripted import ScriptedModel
from exact.reflection.llm import LLMReflector, parse_expectation, parse_reflection
from exact.reflection.memory.open import SQLiteMemory

from ..prompts.states import LIST, context, page, surprise

GOOD = "Expected: The shoe is bought.\nReal: The size was\nmissing.\n**Lesson:** When a size field is empty, fill it before buying."


async def reflected(answer=GOOD, kind="policy", **fields):
    model = ScriptedModel(answer if callable(answer) else lambda question, sample: answer)
    reflector = LLMReflector(model, sampling=Sampling(temperature=0.3), run="r1", clock=lambda: 5.0)
    return await reflector.reflect(context(), surprise(**fields), kind), model


async def test_a_reflection_keeps_expectation_result_and_provenance():
    reflection, model = await reflected()
    assert (reflection.expected, reflection.real) == ("The shoe is bought.", "The size was missing.")
    assert [request.prompt.partition("@")[0] for request in model.requests] == ["expectation", "reflection"]
    assert reflection.text == "When a size field is empty, fill it before buying."
    assert (reflection.run, reflection.task, reflection.site, reflection.node) == ("r1", "shop/buy?seed=1", "shop.test", 3)
    assert reflection.action_label == 'click button "Buy"' and reflection.surprise == pytest.approx(-0.7)
    assert reflection.model == model.name and reflection.prompt.startswith("reflection@6:") and reflection.created == 5.0
    assert reflection.tainted


async def test_the_id_is_that_of_the_content():
    (first, _), (same, _), (other, _) = [await reflected(answer) for answer in (GOOD, GOOD, GOOD.replace("before", "after"))]
    assert first.id == same.id != other.id


async def test_the_requests_are_the_reflectors():
    _, model = await reflected(after=LIST)
    asked = [(each.role, each.node, each.sampling.n, each.sampling.temperature) for each in model.requests]
    assert asked == [("reflection", 3, 1, 0.3)] * 2


def said(request):
    return request.messages[1].parts[0].text


async def test_the_expectation_of_a_step_is_requested_before_its_result_is_shown():
    _, model = await reflected(after=LIST)
    first, second = map(said, model.requests)
    assert "Red shoe" not in first and "What should the next state show?" in first
    assert "Red shoe" in second and "The shoe is bought." in second


async def test_the_configuration_bounds_the_observations_in_a_prompt():
    long = page(*(("heading", f"An offer of shoes, number {number}") for number in range(300)))
    sizes = []
    for tokens in (100, 5000):
        model = ScriptedModel(lambda question, sample: GOOD)
        config = parse({"reflection": {"kind": "llm"}, "view": {"observation_tokens": tokens}, "models": {"policy": {"model": "m"}}})
        reflector = build_agent(config, lambda role, model=model: model).reflector
        await reflector.reflect(context(), surprise(after=long), "policy")
        sizes.append(len(said(model.requests[-1])))
    assert sizes[0] < sizes[1]


async def test_a_judge_is_shown_its_own_reasons_and_asked_for_the_opposite_argument():
    judged = Evaluation(value=0.8, rationale="The cart is full.", arguments=(Argument(side="against", text="Nothing is paid."),))
    reflection, model = await reflected(kind="value", after=LIST, judgement=judged)
    (request,) = model.requests
    assert all(
        words in said(request) for words in ("was judged 0.80", "worth 0.10", "The cart is full.", "the case against", "Nothing is paid.")
    )
    assert "strongest argument for the other verdict" in request.messages[0].parts[0].text
    assert reflection.expected == "success with probability 0.80: The cart is full."


async def test_the_questions_depend_on_the_kind_of_reflection():
    asked = [said((await reflected(kind=kind))[1].requests[-1]) for kind in ("policy", "value")]
    assert "who chooses actions" in asked[0] and "who judges states" in asked[1]


async def test_a_reflection_that_is_too_long_is_sent_back():
    long = f"Expected: a.\nReal: b.\nLesson: When {'word ' * 101}"
    reflection, model = await reflected(lambda question, sample: GOOD if "Answer again: write the word Real" in question.text else long)
    assert len(model.requests) == 3 and reflection.text.startswith("When a size")


async def test_no_reflection_is_made_without_a_usable_answer():
    with pytest.raises(AnswerError, match="asked 3 times"):
        await reflected("I have learnt nothing.")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "missing"),
        ("Lesson: When only this", "parts are lesson"),
        (f"{GOOD}\nLesson: another", "each once"),
        ("Expected: a\nReal:\nLesson: When c", "nothing follows Real"),
        ("Real: b\nLesson: Click better.", "names no condition"),
    ],
)
def test_an_invalid_reflection_is_reported(text, told):
    with pytest.raises(AnswerError, match=told):
        parse_reflection(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>hm</think>Expected: A list.\nReal: no.", "A list."),
        ("A list\nof shoes.", "A list of shoes."),
        ("Well.\n**Expected:** It.", "It."),
    ],
)
def test_an_expectation_is_the_text_after_its_mark_or_all_of_it(text, expected):
    assert parse_expectation(text) == expected


@pytest.mark.parametrize(
    ("text", "told"), [("", "nothing"), ("Expected: a\nExpected: b", "twice"), ("Expected: " + "word " * 101, "101 words")]
)
def test_an_invalid_expectation_is_reported(text, told):
    with pytest.raises(AnswerError, match=told):
        parse_expectation(text)


@given(st.lists(st.sampled_from(GOOD.splitlines()) | st.text()).map("\n".join))
def test_any_text_is_a_reflection_or_an_answer_error(text):
    try:
        assert all(parse_reflection(text))
    except AnswerError as error:
        assert str(error)


async def test_a_reflection_can_be_stored(tmp_path):
    reflection, _ = await reflected()
    memory = SQLiteMemory(tmp_path / "memory.sqlite")
    memory.add(reflection)
    found = memory.retrieve(context(), "policy", k=1, threshold=0.0, exclude_task=None)
    memory.close()
    assert found == (reflection,)


async def test_a_lesson_names_an_element_of_the_states_or_is_asked_for_again():
    vague = "Expected: It is sent.\nReal: no.\nLesson: When a textbox is focused, judge it higher."
    reflection, model = await reflected(lambda question, sample: GOOD if "Answer again: write the word Real" in question.text else vague)
    assert reflection.text.startswith("When a size") and len(model.requests) == 3


@pytest.mark.parametrize("none", ["none", "None.", "**none**"])
async def test_a_model_may_find_no_lesson(none):
    reflection, _ = await reflected(f"Expected: It is bought.\nReal: It was bought.\nLesson: {none}")
    assert reflection is None


async def test_a_reflector_is_shown_what_the_other_action_led_to():
    _, model = await reflected(alternative_after=page(("heading", "Blue shoe"), ("textbox", "Size: 42")))
    assert "Size: 42" in said(model.requests[-1])
