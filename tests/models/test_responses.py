"""OpenAI's Responses API: what is sent, and what is read, in the shapes that the API's own types give."""

import json

import msgspec
import pytest

from exact.agents.parse import parse_argument
from exact.errors import AnswerError, PromptRefused
from exact.models.base import Choice, Display, ToolCall, Usage
from exact.models.decode import FailedAnswer, MalformedAnswer
from exact.models.openai import OpenAIModel
from exact.models.providers import providers, serving
from exact.models.responses import answer
from exact.prompts.ask import asks, read

from .native import recorded
from .test_openai import Waits

REASONING = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA", "status": None}
CALL = {"id": "cu_1", "type": "computer_call", "call_id": "call_1", "status": "completed", "pending_safety_checks": []}
CLICK = CALL | {"actions": [{"type": "click", "button": "left", "x": 7, "y": 9, "keys": None}]}
USAGE = {
    "input_tokens": 1000, "input_tokens_details": {"cached_tokens": 600, "cache_write_tokens": 100},
    "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 30}, "total_tokens": 1050,
}  # fmt: skip


def said(text, **fields):
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}], **fields,
    }  # fmt: skip


def response(*output, **fields):
    return {
        "id": "resp_1", "object": "response", "created_at": 1.0, "model": "gpt-x-1", "status": "completed", "error": None,
        "incomplete_details": None, "output": list(output), "usage": USAGE, **fields,
    }  # fmt: skip


@pytest.fixture
def opened(configured):
    def model(url, **fields):
        return OpenAIModel(configured(url, api="responses", **fields), sleep=model.waits)

    model.waits = Waits()
    return model


async def test_a_plain_question_and_its_answer(opened, ask):
    with recorded(response(REASONING, said("Buy it."))) as server:
        model = opened(server.base_url, price={"input": 10, "output": 20, "cached": 1, "cache_write": 12})
        found = await model.complete(ask("Which?", temperature=0.5, top_p=0.9, max_tokens=100))
        await model.close()
    (body,) = server.bodies
    key = body.pop("prompt_cache_key")
    assert body == {
        "model": "m", "input": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Which?"}],
        "max_output_tokens": 100, "temperature": 0.5, "top_p": 0.9, "store": False, "include": ["reasoning.encrypted_content"],
    }  # fmt: skip
    assert server.paths == ["/v1/responses"] and server.headers[0]["Authorization"] == "Bearer sk-test-0123456789abcdef"
    assert key.startswith("exact-") and (found.choices[0].text, found.choices[0].finish, found.model) == ("Buy it.", "stop", "gpt-x-1")
    cost = (300 * 10 + 600 * 1 + 100 * 12 + 50 * 20) / 1e6
    assert found.usage == Usage(
        input_tokens=1000, cached_tokens=600, cache_write_tokens=100, output_tokens=50, reasoning_tokens=30, cost=pytest.approx(cost)
    )


async def test_pictures_schemas_and_log_probabilities_are_asked_for_in_its_own_terms(opened, ask):
    with recorded(response(said("{}"))) as server:
        model = opened(server.base_url, extra={"text": {"verbosity": "low"}, "reasoning": {"effort": "low"}})
        request = msgspec.structs.replace(ask(images=(b"png",), logprobs=True, top_logprobs=50, max_tokens=1), schema={"type": "object"})
        await model.complete(request)
        await model.close()
    (body,) = server.bodies
    assert body["input"][1]["content"][1] == {"type": "input_image", "image_url": "data:image/png;base64,cG5n", "detail": "auto"}
    form = {"type": "json_schema", "name": "answer", "schema": {"type": "object"}, "strict": True}
    assert body["text"] == {"format": form, "verbosity": "low"} and body["reasoning"] == {"effort": "low"}
    assert body["include"][1] == "message.output_text.logprobs" and body["top_logprobs"] == 20 and body["max_output_tokens"] == 16


@pytest.mark.parametrize(
    ("output", "fields", "choice"),
    [
        ([said("A"), said("B", phase="final_answer")], {}, Choice(text="AB", finish="stop")),
        ([said("Hm.", phase="commentary"), said("B", phase="final_answer")], {}, Choice(text="B", finish="stop")),
        ([said("A")], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, Choice(text="A", finish="length")),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, Choice(text="", finish="content_filter")),
        ([said("") | {"content": [{"type": "refusal", "refusal": "No."}]}], {}, Choice(text="No.", finish="refusal")),
        ([], {"usage": None, "model": None}, Choice(text="", finish="stop")),
    ],
)
def test_an_answer_is_read(output, fields, choice):
    assert answer(json.dumps(response(*output, **fields))).choices == (choice,)


def test_calls_of_tools_and_reasoning_are_kept_as_they_came():
    function = {"type": "function_call", "id": "fc_1", "call_id": "call_2", "name": "grade", "arguments": '{"letter": "A"}'}
    (choice,) = answer(json.dumps(response(REASONING, CLICK, function))).choices
    assert choice.items == (REASONING, CLICK, function) and choice.text == ""
    assert choice.calls == (
        ToolCall(name="computer", arguments={"actions": CLICK["actions"], "checks": []}),
        ToolCall(name="grade", arguments={"letter": "A"}),
    )
    preview = CALL | {"action": {"type": "wait"}, "pending_safety_checks": [{"id": "sc_1", "code": "malicious_instructions"}]}
    (choice,) = answer(json.dumps(response(preview))).choices
    assert choice.calls[0].arguments == {"actions": [{"type": "wait"}], "checks": preview["pending_safety_checks"]}


@pytest.mark.parametrize("body", ["[]", '{"object": "response"}', '{"output": 1}', "<html>"])
def test_what_is_no_response_is_malformed(body):
    with pytest.raises(MalformedAnswer):
        answer(body)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"code": "server_error", "message": "Sorry."}, 500),
        ({"code": "rate_limit_exceeded", "message": "Slow down."}, 429),
        ({"code": "invalid_image", "message": "No."}, 400),
    ],
)
def test_an_answer_may_say_that_the_request_failed(error, status):
    with pytest.raises(FailedAnswer) as caught:
        answer(json.dumps(response(status="failed", error=error)))
    assert caught.value.status == status


async def test_a_failure_inside_an_answer_is_retried_and_a_filter_is_not(opened, ask):
    failed = response(status="failed", error={"code": "server_error", "message": "Sorry."})
    with recorded(failed, response(said("Buy it."))) as server:
        model = opened(server.base_url, retries=1)
        assert (await model.complete(ask())).choices[0].text == "Buy it." and len(server.bodies) == 2
        await model.close()
    flagged = response(
        status="failed", error={"code": "invalid_prompt", "message": "Your prompt was flagged as violating our usage policy."}
    )
    with recorded(flagged) as server:
        model = opened(server.base_url, retries=1)
        with pytest.raises(PromptRefused):
            await model.complete(ask())
        await model.close()
    assert len(server.bodies) == 1


async def test_several_choices_are_asked_for_one_by_one(opened, ask):
    with recorded(response(said("Buy it."))) as server:
        model = opened(server.base_url)
        found = await model.complete(ask(n=3))
        await model.close()
    assert len(found.choices) == len(server.bodies) == 3 and found.usage.input_tokens == 3000


REFUSALS = [
    ("include", {"error": {"message": "Encrypted content is not supported with this model.", "type": "invalid_request_error"}}),
    ("include", {"error": {"message": "Unsupported parameter: 'include'.", "param": "include"}}),
    ("prompt_cache_key", {"error": {"message": "Unknown parameter: 'prompt_cache_key'.", "param": "prompt_cache_key"}}),
    ("prompt_cache_key", {"detail": [{"type": "extra_forbidden", "loc": ["body", "prompt_cache_key"], "msg": "Extra inputs"}]}),
    (
        "temperature",
        {"error": {"message": "Unsupported parameter: 'temperature' is not supported with this model.", "param": "temperature"}},
    ),
    ("store", {"error": "Bad Request"}),
    ("text", {"error": {"message": "Invalid parameter: 'text.format' of type 'json_schema' is not supported", "param": "text.format"}}),
    ("text", {"error": {"message": "This model does not support structured outputs"}}),
    ("top_logprobs", {"error": {"message": "logprobs are not supported with reasoning models.", "param": "include"}}),
]


@pytest.mark.parametrize(("field", "error"), REFUSALS)
async def test_a_refused_field_costs_one_request_and_only_once(opened, ask, field, error):
    with recorded(lambda body: (400, error) if field in body else response(said("Buy it."))) as server:
        model = opened(server.base_url, retries=0)
        request = msgspec.structs.replace(ask(temperature=0.5, logprobs=True, top_logprobs=5), schema={"type": "object"})
        await model.complete(request)
        again = await model.complete(request)
        await model.close()
    assert len(server.bodies) == 3 and field in server.bodies[0] and server.bodies[1] == server.bodies[2]
    assert again.choices[0].text == "Buy it." and server.bodies[2]["input"] == server.bodies[0]["input"]


@asks("write what to buy")
def unusable(text):
    if "Buy" not in text:
        raise AnswerError("write what to buy")
    return parse_argument(text)


async def test_reasoning_goes_back_with_the_next_question(opened, ask):
    with recorded(response(REASONING, said("Hm.")), response(said("Buy it."))) as server:
        model = opened(server.base_url)
        assert [text for _, text in await read(model, ask(), unusable, seed=1)] == ["Buy it."]
        await model.close()
    first, second = server.bodies
    assert second["input"][:4] == [*first["input"], REASONING, said("Hm.")]
    assert second["input"][4]["role"] == "user" and "write what to buy" in second["input"][4]["content"]


async def test_reasoning_that_is_not_in_the_item_stays_behind(opened, ask):
    with recorded(response({**REASONING, "encrypted_content": None}, said("Hm.")), response(said("Buy it."))) as server:
        model = opened(server.base_url)
        await read(model, ask(), unusable, seed=1)
        await model.close()
    assert server.bodies[1]["input"][2] == said("Hm.")


@pytest.mark.parametrize(
    "message",
    [
        "Item with id 'rs_1' not found. Items are not persisted when `store` is set to false.",
        "The encrypted content gAAA could not be verified.",
    ],
)
async def test_items_that_are_refused_go_back_as_text(opened, ask, message):
    def answered(body):
        if any(item.get("type") == "reasoning" for item in body["input"]):
            return 400, {"error": {"message": message}}
        return response(said("Buy it.")) if len(body["input"]) > 2 else response(REASONING, said("Hm."))

    with recorded(answered) as server:
        model = opened(server.base_url, retries=0)
        await read(model, ask(), unusable, seed=1)
        await model.close()
    assert server.bodies[2]["input"][2] == {"role": "assistant", "content": "Hm."} and "include" in server.bodies[2]


@pytest.mark.parametrize(
    ("kind", "tool"),
    [
        ("", {"type": "computer"}),
        (
            "computer_use_preview",
            {"type": "computer_use_preview", "display_width": 800, "display_height": 600, "environment": "browser"},
        ),
    ],
)
async def test_a_call_of_the_computer_is_answered_with_the_screenshot_and_the_error(ask, kind, tool, configured, tmp_path):
    (tmp_path / "mine.yaml").write_text(
        f"mine: {{api: responses, base_url: 'http://127.0.0.1:1/v1', capabilities: {{computer: '{kind}'}}}}"
    )
    with recorded(response(REASONING, CLICK), response(said("Buy it."))) as server:
        config = configured(server.base_url, provider="mine")
        model = OpenAIModel(config, provider=serving(config, providers(str(tmp_path / "mine.yaml"))))
        request = msgspec.structs.replace(ask(images=(b"png",)), screen=Display(width=800, height=600))
        await read(model, request, unusable, seed=1)
        await model.close()
    first, second = server.bodies
    assert first["tools"] == [tool] and first.get("truncation") == ("auto" if kind else None)
    shown = {"type": "computer_screenshot", "image_url": "data:image/png;base64,cG5n"}
    assert second["input"][2:5] == [REASONING, CLICK, {"type": "computer_call_output", "call_id": "call_1", "output": shown}]
    assert "write what to buy" in second["input"][5]["content"]


async def test_a_rate_limit_tells_when_it_is_full_again(opened, ask):
    limited = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1m30s", "x-ratelimit-remaining-tokens": "5"}
    with recorded((429, {"error": {"message": "Rate limit reached"}}, limited), response(said("Buy it."))) as server:
        model = opened(server.base_url, retries=1, timeout=300)
        await model.complete(ask())
        await model.close()
    assert 90 <= opened.waits.seconds[0] <= 100


def test_log_probabilities_are_read():
    listed = [{"token": "yes", "bytes": [121, 101, 115], "logprob": -0.1}, {"token": "no", "bytes": [110, 111], "logprob": -2.5}]
    part = {"type": "output_text", "text": "yes", "annotations": [], "logprobs": [listed[0] | {"top_logprobs": listed}]}
    (choice,) = answer(json.dumps(response(said("") | {"content": [part]}))).choices
    assert choice.logprobs == (-0.1,) and choice.ends == (3,) and choice.top_logprobs == ((("yes", -0.1), ("no", -2.5)),)
