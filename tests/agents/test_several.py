from collections.abc import Callable

import pytest

from exact.agents.agent import build
from exact.agents.roles import model_for, roles
from exact.agents.value.constant import ConstantValue
from exact.agents.value.several import CascadeValue, EnsembleValue
from exact.config import parse
from exact.context import Context, Evaluation
from exact.errors import ModelError, UsageError
from exact.models.base import ChatModel
from exact.models.scripted import ScriptedModel

from ..prompts.states import context


class Broken:
    async def evaluate(self, context: Context) -> Evaluation:
        raise ModelError("gone")


@pytest.mark.parametrize(("fields", "value"), [({}, 0.3), ({"terminated": True}, 0.9), ({"confirms": True}, 0.9), ({"draw": 1}, 0.9)])
async def test_the_dear_judge_is_called_where_a_state_decides(fields: dict[str, object], value: float):
    assert (await CascadeValue(ConstantValue(0.3), ConstantValue(0.9)).evaluate(context(**fields))).value == value


async def test_a_panel_is_the_mean_of_its_members_and_says_what_each_held():
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
    assert all(model_for(settings, role).model == "m" for role in roles(settings))
    agent = build(settings, asked("So.\nVerdict: B"))
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
        build(parse({"value": value, "models": {"policy": {"model": "m"}}}), asked(""))


async def test_a_classifiers_number_is_the_value_and_nothing_else_is():
    settings = parse({"value": {"kind": "trained"}, "models": {"policy": {"model": "m"}}})
    assert (await build(settings, asked("0.73")).value.evaluate(context())).value == 0.73
    for answer in ("1.2", "nan", "Verdict: A", ""):
        with pytest.raises(ModelError):
            await build(settings, asked(answer)).value.evaluate(context())


async def test_a_single_debate_is_one_call():
    model = ScriptedModel(lambda question, sample: "Last step: done.\nVerdict: B")
    settings = parse({"value": {"kind": "single_debate", "grades": "desktop"}, "models": {"policy": {"model": "m"}}})
    found = await build(settings, lambda role: model).value.evaluate(context())
    assert found.value == pytest.approx(0.75) and len(model.requests) == 1
    assert model.requests[0].prompt.startswith("value_debate@2:")
