"""A classifier behind HTTP: what is sent, what is read, and what goes wrong."""

import json

import pytest
from pytest_httpserver import HTTPServer

from exact.agents.agent import build_agent
from exact.config import ModelConfig, parse
from exact.errors import AnswerError, ModelError
from exact.models.openai import OpenAIModel
from exact.models.scripted import Malformed, ScriptedServer, Status

from ..prompts.states import context


def judge(url: str, **model: object):
    trained = {"model": "value-1", "base_url": url, "api": "classify", "retries": 1} | model
    settings = parse({"value": {"kind": "trained"}, "models": {"value": trained, "policy": {"model": "m"}}})
    opened = OpenAIModel(settings.models.value)  # type: ignore[arg-type]
    return build_agent(settings, lambda role: opened).value, opened


async def test_a_probability_is_asked_for_at_classify_and_is_the_value():
    async with ScriptedServer(lambda question, sample: "0.73") as server:
        value, model = judge(server.base_url, price={"input": 1, "output": 0})
        found = await value.evaluate(context())
        await model.close()
    assert found.value == 0.73 and server.paths == ["/v1/classify"]
    (body,) = server.bodies
    assert set(body) == {"model", "messages"} and body["model"] == "value-1"
    assert "Buy the blue shoe" in body["messages"][1]["content"]


async def test_the_tokens_of_a_classifier_are_counted_and_it_is_retried(ask):
    async with ScriptedServer(lambda q, s: "1", faults=lambda q, times: Status(500, retry_after=0.01) if times == 0 else None) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, api="classify", price=None))
        answer = await model.complete(ask())
        await model.close()
    assert answer.choices[0].text == "1.0" and answer.usage.input_tokens == server.input_tokens > 0 and len(server.bodies) == 2


@pytest.mark.parametrize("data", [[{"index": 0, "label": "ok", "probs": [0.25, 0.75], "num_classes": 2}], [{"probs": [0.75]}], 0.75])
async def test_the_forms_that_servers_use_are_read(data: object, httpserver: HTTPServer):
    httpserver.expect_request("/classify", method="POST").respond_with_json(
        {"data": data, "usage": {"prompt_tokens": 7, "total_tokens": 7}}
    )
    value, model = judge(httpserver.url_for(""))
    assert (await value.evaluate(context())).value == 0.75
    await model.close()


@pytest.mark.parametrize("body", [{"data": 1.5}, {"data": "high"}, {"data": []}, {"data": [{"probs": [0.1, 0.2, 0.7]}]}, {"choices": []}])
async def test_an_invalid_probability_is_an_error_and_no_value(body: object):
    async with ScriptedServer(lambda q, s: "0", faults=lambda q, times: Malformed(json.dumps(body))) as server:
        value, model = judge(server.base_url, retries=0)
        with pytest.raises(ModelError) as raised:
            await value.evaluate(context())
        assert not isinstance(raised.value, AnswerError), "nobody showed it its error"
        await model.close()
