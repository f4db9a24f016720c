from collections.abc import Callable

import pytest
import yaml

from exact.agents.agent import build_agent
from exact.agents.roles import roles
from exact.agents.value.build import CascadeValue, EnsembleValue
from exact.agents.value.controls import ConstantValue
from exact.config import dump, parse
from exact.context import Context, Evaluation
from exact.errors import ModelError, UsageError
from exact.models.base import ChatModel
from exact.models.open import model_for
from exact.models.scripted import ScriptedModel
from tests.prompts.states import context


class Broken:
    async def evaluate(self, context: Context) -> Evaluation:
        raise ModelError("gone")


@pytest.mark.parametrize(("fields", "value"), [({}, 0.3), ({"terminated": True}, 0.9), ({"confirms": True}, 0.9), ({"draw": 1}, 0.9)])
async def test_the_expensive_value_function_is_called_where_a_state_decides(fields: dict[str, object], value: float):
    assert (await CascadeValue(ConstantValue(0.3), ConstantValue(0.9)).evaluate(context(**fields))).value == value


async def test_a_panel_is_the_mean_of_its_members_and_reports_each_value():
    found = await EnsembleValue({"a": ConstantValue(0.2), "b": ConstantValue(0.6)}).evaluate(context())
    assert found.value == pytest.approx(0.4) and found.between == pytest.approx(0.2)
    assert found.judges == ("a: 0.20, constant", "b: 0.60, constant")


async def test_a_member_that_cannot_be_heard_is_not_left_out():
    with pytest.raises(ModelError):
        await EnsembleValue({"a": ConstantValue(0.2), "b": Broken()}).evaluate(context())


def asked(answer: str) -> Callable[[str], ChatModel]:
    return lambda role: ScriptedModel(lambda question, sample: answer)


async def test_a_cascade_is_built_from_its_configuration():
    settings = parse(
        {
            "value": {"kind": "cascade", "members": [{"kind": "llm", "samples": 1}, {"kind": "debate", "judges": 2}]},
            "models": {"policy": {"model": "m"}},
        }
    )
    assert roles(settings) == ("value", "value.supporter", "value.opposer", "value.judge", "value.judge.1")
    assert all(model_for(settings.models, role).model == "m" for role in roles(settings))
    agent = build_agent(settings, asked("So.\nVerdict: B"))
    assert (await agent.value.evaluate(context(terminated=True))).value == 0.8


@pytest.mark.parametrize(
    "value",
    [
        {"kind": "cascade", "members": [{"kind": "llm"}]},
        {"kind": "ensemble"},
        {"kind": "llm", "members": [{"kind": "llm"}]},
        {"kind": "ensemble", "members": [{"kind": "oracle"}]},
    ],
)
def test_members_that_do_not_fit_are_refused(value: dict[str, object]):
    with pytest.raises(UsageError, match="value"):
        build_agent(parse({"value": value, "models": {"policy": {"model": "m"}}}), asked(""))


async def test_a_classifiers_number_is_the_value_and_nothing_else_is():
    settings = parse({"value": {"kind": "trained"}, "models": {"policy": {"model": "m"}}})
    assert (await build_agent(settings, asked("0.73")).value.evaluate(context())).value == 0.73
    for answer in ("1.2", "nan", "Verdict: A", ""):
        with pytest.raises(ModelError):
            await build_agent(settings, asked(answer)).value.evaluate(context())


async def test_a_single_debate_is_one_call():
    model = ScriptedModel(lambda question, sample: "Last step: done.\nVerdict: B")
    settings = parse({"value": {"kind": "single_debate", "grades": "desktop"}, "models": {"policy": {"model": "m"}}})
    found = await build_agent(settings, lambda role: model).value.evaluate(context())
    assert found.value == pytest.approx(0.75) and len(model.requests) == 1
    assert model.requests[0].prompt.startswith("value_debate@6:")


async def test_without_members_a_cascade_is_one_grade_and_a_debate_with_its_settings():
    settings = parse({"value": {"kind": "cascade", "samples": 3, "grades": "web"}, "models": {"policy": {"model": "m"}}})
    cheap, dear = settings.value.members
    assert (cheap.kind, cheap.samples, dear.kind, dear.samples) == ("llm", 1, "debate", 3)
    assert cheap.grades == dear.grades == "web"
    model = ScriptedModel(lambda question, sample: "So.\nVerdict: B")
    agent = build_agent(settings, lambda role: model)
    await agent.value.evaluate(context())
    assert [request.role for request in model.requests] == ["value"]
    found = await agent.value.evaluate(context(confirms=True))
    assert found.arguments and [r.role for r in model.requests][1:] == ["value.supporter", "value.opposer", "value.judge", "value.judge"]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"policy": {"kind": "llm"}}, "cascade"),
        ({"policy": {"kind": "llm"}, "value": {"samples": 2}}, "cascade"),
        ({"policy": {"kind": "llm"}, "value": {"kind": "lexical"}}, "lexical"),
        ({"policy": {"kind": "llm"}, "search": {"algorithm": "react"}}, "lexical"),
        ({}, "lexical"),
    ],
)
def test_a_language_model_is_judged_by_a_cascade_where_no_judge_is_named(data: dict[str, object], kind: str):
    settings = parse(data)
    assert settings.value.kind == kind and parse(yaml.safe_load(dump(settings))) == settings


@pytest.mark.parametrize("value", [{"kind": "debate"}, {"kind": "cascade"}, {"kind": "lexical", "comparison": "llm"}])
def test_an_agent_is_built_of_the_models_of_its_roles_for_any_search(value: dict[str, object]):
    settings = parse({"value": value, "search": {"algorithm": "react"}, "models": {"policy": {"model": "m"}}})
    assert build_agent(settings, {role: ScriptedModel(lambda question, sample: "") for role in roles(settings)}.__getitem__).value


@pytest.mark.parametrize(
    ("value", "used"),
    [
        ({"kind": "llm"}, ["value"]),
        ({"kind": "llm", "role": "value.mine"}, ["value.mine"]),
        ({"kind": "lexical", "comparison": "llm"}, ["value"]),
        ({"kind": "lexical"}, []),
    ],
)
def test_a_value_function_uses_the_model_of_its_role(value: dict[str, object], used: list[str]):
    found: list[str] = []

    def models(role: str) -> ChatModel:
        found.append(role)
        return ScriptedModel(lambda question, sample: "")

    build_agent(parse({"value": value, "models": {"policy": {"model": "m"}}}), models)
    assert found == used


@pytest.mark.parametrize("kind", ["llm", "debate", "rubric"])
def test_a_judge_that_would_see_nothing_is_refused(kind: str):
    with pytest.raises(UsageError, match="show at least one"):
        build_agent(parse({"value": {"kind": kind, "text": False}, "models": {"policy": {"model": "m"}}}), asked(""))
