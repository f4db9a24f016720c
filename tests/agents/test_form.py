"""Answers as JSON: read where a schema was sent, where none was, and asked for as `structured` says."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents import form
from exact.agents.parse import (
    parse_action,
    parse_actions,
    parse_check_answers,
    parse_checks,
    parse_grade,
    parse_grades,
    parse_preference,
)
from exact.agents.policy.llm import LLMPolicy
from exact.agents.siblings import LLMValue
from exact.agents.value.debate import DebateValue, Speaker
from exact.agents.value.rubric import RubricValue
from exact.agents.value.samples import SCALES
from exact.config import ModelConfig, PolicyConfig, ValueConfig
from exact.errors import ActionError, AnswerError
from exact.models.base import Sampling
from exact.models.openai import OpenAIModel
from exact.models.providers import ModelCapabilities, Provider
from exact.models.scripted import Reply, ScriptedModel, ScriptedServer, Status
from tests.prompts.states import ACTIONS, SHOE, context


def action(said: object, **fields: object):
    return parse_action(json.dumps({"thought": "size!", "action": said, **fields}), ACTIONS, SHOE)


@pytest.mark.parametrize("dress", ["{}", "```json\n{}\n```", "<think>Action: click [1]</think>\n{}", "\n {} \n", "```\n{}```"])
def test_an_action_is_read_from_an_object_in_any_dress(dress):
    found = parse_action(dress.replace("{}", '{"thought": "size!", "action": "fill [3] \\"42\\""}'), ACTIONS, SHOE)
    assert (found.action.key, found.thought) == ('fill [3] "42"', "size!")


def test_the_label_of_the_line_may_stand_before_the_action():
    assert action("Action: click [2]").action.key == "click [2]"


@pytest.mark.parametrize("said", ["click [9]", "Action: click [1]\nor\nAction: click [2]", "dance [1]", "", "click [2] and click [3]"])
def test_an_unusable_action_in_an_object_is_an_error(said):
    with pytest.raises(ActionError):
        action(said)


def test_lines_inside_a_property_are_not_lines_of_the_answer():
    assert action("click [2]", thought='Action: click [1]\n"Verdict: E"').action.key == "click [2]"
    graded = parse_grade(json.dumps({"reasoning": "It says:\nVerdict: A", "verdict": "D"}))
    assert (graded.value, graded.reasoning) == (0.2, "It says:\nVerdict: A")
    both = {"verdicts": [{"step": 1, "reasoning": "Verdict 2: A", "verdict": "E"}, {"step": 2, "reasoning": "", "verdict": "C"}]}
    assert [each.value for each in parse_grades(json.dumps(both), SCALES["even"], 2)] == [0.0, 0.5]
    assert parse_checks(json.dumps({"checks": ["Is it?\nCheck 2: Was it?"]})) == ("Is it? Check 2: Was it?",)


def listed(*said: object, thought: str = "Think.") -> str:
    return json.dumps({"thought": thought, "actions": said})


def test_listed_actions_are_read_with_reasons_and_confidences():
    text = listed(
        {"why": "Buy.", "action": "click [2]", "percent": 60}, {"why": "No.", "action": "click [9]", "percent": 30},
        {"why": "Size.", "action": 'fill [3] "42"', "percent": 10}, {"why": "Again.", "action": "click [2]", "percent": 5}, 7,
    )  # fmt: skip
    found = parse_actions(text, ACTIONS, SHOE)
    assert [(each.chosen.action.key, each.confidence, each.chosen.thought) for each in found] == [
        ("click [2]", 0.6, "Think.\nBuy."),
        ('fill [3] "42"', 0.1, "Size."),
    ]
    assert [text[slice(*each.span)] for each in found] == ["click [2]", r"fill [3] \"42\""]


@pytest.mark.parametrize(
    ("given", "read"),
    [((0.7, 0.2), (0.7, 0.2)), ((70, 20), (0.7, 0.2)), ((None, "x"), (0.5, 0.5)), ((100, 0), (1.0, 0.01)), ((1, 1), (1.0, 1.0))],
)
def test_confidences_are_percents_or_shares(given, read):
    texts = [{"action": f"click [{at}]", "percent": each} for at, each in enumerate(given, 1)]
    assert tuple(each.confidence for each in parse_actions(listed(*texts), ACTIONS, SHOE)) == read


def test_a_list_of_unusable_actions_is_an_error_with_the_first_reason():
    with pytest.raises(ActionError, match=r"no element \[9\]"):
        parse_actions(listed({"action": "click [9]"}, {"action": "dance"}), ACTIONS, SHOE)


@pytest.mark.parametrize("verdict", ["F", "", None, 3, "AB", ["A"]])
def test_a_verdict_that_is_no_letter_is_an_error(verdict):
    with pytest.raises(AnswerError, match="no letter from A to E"):
        parse_grade(json.dumps({"reasoning": "", "verdict": verdict}))


def test_verdicts_of_siblings_must_be_complete_and_clear():
    one = {"step": 1, "reasoning": "a", "verdict": "b"}
    assert parse_grades(json.dumps({"verdicts": [one]}), SCALES["even"], 1) == ((0.8, "a"),)
    for some in ([one], [one, one | {"verdict": "C"}], [one, {"step": 3, "verdict": "A"}]):
        with pytest.raises(AnswerError):
            parse_grades(json.dumps({"verdicts": some}), SCALES["even"], 2)


def test_checks_and_their_answers_are_read_from_objects():
    given = {"answers": [{"check": 2, "quote": "", "answer": "no"}, {"check": 1, "quote": 'the "blue"\nshoe', "answer": "Yes"}]}
    assert parse_check_answers(json.dumps(given), 2) == ((True, 'the "blue" shoe'), (False, ""))
    for wrong in ([{"check": 1, "answer": "perhaps"}], [{"check": 1, "answer": "no"}] * 2, [{"check": 5, "answer": "no"}]):
        with pytest.raises(AnswerError):
            parse_check_answers(json.dumps({"answers": wrong}), 1)


def test_a_preference_is_read_from_an_object():
    assert [parse_preference(json.dumps({"better": each})) for each in ("first", "second", "neither")] == [1.0, 0.0, 0.5]
    with pytest.raises(AnswerError):
        parse_preference('{"better": "both"}')


@given(st.text() | st.from_regex(r"\{.*\}", fullmatch=True))
def test_any_text_is_an_object_or_none(text):
    assert isinstance(dict(form.read_object(text)), dict)


FORMS = [form.ACTION, form.ACTIONS, form.GRADE, form.GRADES, form.CHECKS, form.CHECK_ANSWERS, form.PREFERENCE]


def closed(schema: dict) -> bool:
    """Return whether every object requires all of its properties and allows no others, as strict servers demand."""
    inner = [*schema.get("properties", {}).values(), *([schema["items"]] if "items" in schema else [])]
    exact = schema["type"] != "object" or (schema["required"] == list(schema["properties"]) and schema["additionalProperties"] is False)
    return exact and all(map(closed, inner))


@pytest.mark.parametrize("each", FORMS)
def test_forms_are_strict_and_their_examples_show_all_properties(each):
    assert closed(each.schema) and all(f'"{name}"' in each.example for name in each.schema["properties"])


STATEMENTS = {"action": "click [2]", "actions": [{"why": "", "action": "click [2]", "percent": 90}], "verdict": "B"}


async def asked(structured: str, *, json_answers: bool = True, faults=lambda question, times: None, **fields):
    """Return the bodies of a policy's question to a model that keeps to a schema only."""

    def answers(question, sample):
        body = server.bodies[-1]
        return json.dumps(STATEMENTS) if json_answers and ("response_format" in body or "tools" in body) else "Which one?"

    async with ScriptedServer(answers, faults=faults) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, structured=structured, retries=0, **fields))
        try:
            policy = LLMPolicy(model, PolicyConfig(form="list"))
            found = [(await policy.propose(context(node=node), ACTIONS, 3))[0].action.key for node in range(2)]
        except AnswerError as error:
            found = [str(error)]
        await model.close()
    return found, server.bodies


async def test_a_schema_is_sent_after_an_answer_that_does_not_parse():
    found, bodies = await asked("auto")
    assert found == ["click [2]", "click [2]"] and ["response_format" in body for body in bodies] == [False, True, False, True]
    sent = bodies[1]["response_format"]["json_schema"]
    assert sent["strict"] and sent["schema"] == form.ACTIONS.schema
    assert "one JSON object" in bodies[1]["messages"][-1]["content"] and "one JSON object" not in bodies[0]["messages"][-1]["content"]


async def test_a_schema_is_sent_at_once_or_never():
    found, bodies = await asked("always")
    assert found == ["click [2]", "click [2]"] and ["response_format" in body for body in bodies] == [True, True]
    found, bodies = await asked("never")
    assert "asked 3 times" in found[0] and ["response_format" in body for body in bodies] == [False] * 3


WORDINGS = ["response_format json_schema is not supported", "This model has no structured outputs", 'Unknown name "response_schema"', "No"]


@pytest.mark.parametrize("wording", WORDINGS)
async def test_a_server_that_refuses_a_schema_is_asked_for_lines_from_then_on(wording):
    bodies = []

    def answers(question, sample):
        bodies.append(server.bodies[-1])
        return "Action (80%): click [2]"

    faults = lambda question, times: Status(400, wording) if "response_format" in server.bodies[-1] else None  # noqa: E731
    async with ScriptedServer(answers, faults=faults) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, structured="always", retries=0))
        policy = LLMPolicy(model, PolicyConfig(form="list"))
        for node in range(2):
            assert (await policy.propose(context(node=node), ACTIONS, 3))[0].action.key == "click [2]"
        await model.close()
    assert ["response_format" in body for body in server.bodies] == [True, False, False]
    assert "one JSON object" not in server.bodies[1]["messages"][-1]["content"]


async def test_lines_are_read_where_a_schema_was_sent_and_ignored():
    async with ScriptedServer(lambda question, sample: "Fine.\nVerdict: B") as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, structured="always"))
        found = await LLMValue(model, ValueConfig(samples=1)).evaluate(context())
        await model.close()
    assert found.value == 0.8 and "response_format" in server.bodies[0]


async def test_an_object_is_read_where_lines_were_asked_for():
    model = ScriptedModel(lambda question, sample: '{"reasoning": "fine", "verdict": "B"}')
    found = await LLMValue(model, ValueConfig(samples=1)).evaluate(context())
    assert (found.value, found.rationale) == (0.8, "fine") and model.requests[0].schema is None


async def test_judges_and_rubrics_are_asked_for_objects():
    def answers(question, sample):
        properties = server.bodies[-1].get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
        given = {"checks": ["Is it bought?"], "answers": [{"check": 1, "quote": "", "answer": "no"}], "verdict": "B", "reasoning": "r"}
        return json.dumps({name: given[name] for name in properties}) if properties else "My case."

    async with ScriptedServer(answers) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, structured="always"))
        seat = Speaker(model, Sampling())
        debate = await DebateValue(seat, seat, [seat], ValueConfig(kind="debate", samples=1)).evaluate(context())
        rubric = await RubricValue(model, ValueConfig(kind="rubric", samples=1)).evaluate(context())
        await model.close()
    assert (debate.value, rubric.value) == (0.8, 0.0) and len(debate.arguments) == 2


async def test_a_tool_carries_the_schema_where_the_provider_says_so():

    def answers(question, sample):
        return json.dumps({"reasoning": "r", "verdict": "B"})

    async with ScriptedServer(answers) as server:
        provider = Provider(name="p", base_url=server.base_url, capabilities=ModelCapabilities(json_schema=False, tools=True))
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, structured="always"), provider=provider)
        found = await LLMValue(model, ValueConfig(samples=1)).evaluate(context())
        await model.close()
    [body] = server.bodies
    assert body["tool_choice"] == {"type": "function", "function": {"name": "answer"}} and "response_format" not in body
    assert body["tools"][0]["function"]["parameters"] == form.GRADE.schema and found.value == 0.8


async def test_tokens_weigh_the_actions_of_an_object():
    text = listed({"why": "", "action": "click [2]", "percent": 10}, {"why": "", "action": "click [1]", "percent": 90})
    cut = [text.index("click [2]"), text.index("click [2]") + 9, text.index("click [1]"), text.index("click [1]") + 9]
    tokens = tuple(text[a:b] for a, b in zip([0, *cut], [*cut, len(text)], strict=True))
    model = ScriptedModel(lambda question, sample: Reply(text=text, tokens=tokens, logprobs=(-3.0, -0.1, -3.0, -1.1, -3.0)))
    got = await LLMPolicy(model, PolicyConfig(form="list", weigh="logprobs")).propose(context(), ACTIONS, 3)
    assert [p.action.key for p in got] == ["click [2]", "click [1]"] and got[0].prior == pytest.approx(1 / (1 + math.exp(-1.0)))


@pytest.mark.parametrize("parse", [parse_checks, parse_grade, parse_preference])
def test_an_object_that_is_nested_too_deeply_is_an_answer_that_does_not_read(parse):
    with pytest.raises(AnswerError):
        parse('{"a":' * 5000 + "1" + "}" * 5000)
