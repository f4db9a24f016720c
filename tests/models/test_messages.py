"""Anthropic's Messages API: what is sent, and what is read, in the shapes that the API's own types give."""

import json

import msgspec
import pytest

from exact.agents.parse import parse_argument
from exact.errors import AnswerError, ModelError, PromptRefused
from exact.models.base import Choice, Display, Tariff, ToolCall, Usage
from exact.models.decode import FailedAnswer, MalformedAnswer
from exact.models.messages import answer
from exact.models.openai import OpenAIModel
from exact.models.providers import providers, serving
from exact.prompts.ask import asks, read

from .native import recorded
from .test_openai import Waits

THINKING = {"type": "thinking", "thinking": "Sell?", "signature": "EqQB"}
REDACTED = {"type": "redacted_thinking", "data": "EmwK"}
CLICK = {"type": "tool_use", "id": "toolu_1", "name": "computer", "input": {"action": "left_click", "coordinate": [7, 9]}}
USAGE = {
    "input_tokens": 300, "cache_creation_input_tokens": 100, "cache_read_input_tokens": 600, "output_tokens": 50,
    "cache_creation": {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 0},
    "output_tokens_details": {"thinking_tokens": 30}, "service_tier": "standard",
}  # fmt: skip
MARK = {"cache_control": {"type": "ephemeral"}}


def text(words):
    return {"type": "text", "text": words}


def message(*content, stop="end_turn", **fields):
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x-1", "content": list(content), "stop_reason": stop,
        "stop_sequence": None, "usage": USAGE, **fields,
    }  # fmt: skip


def error(kind, words):
    return {"type": "error", "error": {"type": kind, "message": words}, "request_id": "req_1"}


@pytest.fixture
def opened(configured):
    def model(url, **fields):
        return OpenAIModel(configured(url, api="messages", **fields), sleep=model.waits)

    model.waits = Waits()
    return model


async def test_a_plain_question_and_its_answer(opened, ask):
    with recorded(message(THINKING, text("Buy it."))) as server:
        model = opened(server.base_url, price={"input": 10, "output": 20, "cached": 1, "cache_write": 12})
        found = await model.complete(ask("Which?", temperature=0.5, top_p=0.9, max_tokens=100))
        await model.close()
    assert server.bodies == [{
        "model": "m", "max_tokens": 100, "system": [text("Be brief.") | MARK], "temperature": 0.5, "top_p": 0.9,
        "messages": [{"role": "user", "content": [text("Which?")]}],
    }]  # fmt: skip
    headers = server.headers[0]
    assert headers["X-Api-Key"] == "sk-test-0123456789abcdef" and headers["Anthropic-Version"] == "2023-06-01"
    assert "Authorization" not in headers and "Anthropic-Beta" not in headers and server.paths == ["/v1/messages"]
    assert (found.choices[0].text, found.choices[0].finish, found.model) == ("Buy it.", "stop", "claude-x-1")
    cost = (300 * 10 + 600 * 1 + 100 * 12 + 50 * 20) / 1e6
    assert found.usage == Usage(
        input_tokens=1000, cached_tokens=600, cache_write_tokens=100, output_tokens=50, reasoning_tokens=30, cost=pytest.approx(cost)
    )


def test_cached_tokens_cost_what_the_price_list_says(configured):
    config = configured("", provider="anthropic_messages", model="claude-sonnet-4-5")
    usage = answer(json.dumps(message(text("")))).usage
    price = Tariff(config).price
    assert price and price.cached and price.cache_write and price.cached < price.input < price.cache_write == price.highest_input
    assert Tariff(config).cost(usage) == pytest.approx((300 * 3 + 600 * 0.3 + 100 * 3.75 + 50 * 15) / 1e6)


async def test_pictures_and_schemas_are_asked_for_in_its_own_terms(opened, ask):
    with recorded(message(text("{}"))) as server:
        model = opened(server.base_url, extra={"output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}})
        request = msgspec.structs.replace(ask(images=(b"png",), logprobs=True, temperature=1.3), schema={"type": "object"})
        found = await model.complete(request)
        await model.close()
    (body,) = server.bodies
    source = {"type": "base64", "media_type": "image/png", "data": "cG5n"}
    assert body["messages"][0]["content"][1] == {"type": "image", "source": source}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": {"type": "object"}}, "effort": "low"}
    assert body["thinking"] == {"type": "adaptive"} and body["temperature"] == 1.0
    assert found.notes == ("a temperature above 1", "logprobs")


@pytest.mark.parametrize(
    ("data", "choice"),
    [
        (message(text("A"), text("B")), Choice(text="AB", finish="stop")),
        (message(text("A"), stop="max_tokens"), Choice(text="A", finish="length")),
        (message(text("A"), stop="model_context_window_exceeded"), Choice(text="A", finish="length")),
        (message(text("A"), stop="stop_sequence"), Choice(text="A", finish="stop")),
        (
            message(stop="refusal", stop_details={"type": "refusal", "category": "cyber", "explanation": "No."}),
            Choice(text="No.", finish="refusal"),
        ),
        (message(stop="refusal", stop_details=None), Choice(text="", finish="refusal")),
        (message(text("A"), stop=None, usage=None, model=None), Choice(text="A")),
    ],
)
def test_an_answer_is_read(data, choice):
    assert answer(json.dumps(data)).choices == (choice,)


def test_calls_of_tools_and_thinking_are_kept_as_they_came():
    grade = {"type": "tool_use", "id": "toolu_2", "name": "grade", "input": {"letter": "A"}}
    member = {"type": "tool_use", "id": "toolu_3", "name": "key", "toolset_name": "computer", "input": {"text": "Return"}}
    (choice,) = answer(json.dumps(message(THINKING, REDACTED, text("Now."), CLICK, grade, member, stop="tool_use"))).choices
    assert choice.text == "Now." and choice.finish == "stop" and choice.items == (THINKING, REDACTED, text("Now."), CLICK, grade, member)
    assert choice.calls == (
        ToolCall(name="computer", arguments={"action": "left_click", "coordinate": [7, 9]}),
        ToolCall(name="grade", arguments={"letter": "A"}),
        ToolCall(name="computer", arguments={"action": "key", "text": "Return"}),
    )


@pytest.mark.parametrize("body", ["[]", '{"type": "message"}', '{"content": "A"}', "<html>"])
def test_what_is_no_message_is_malformed(body):
    with pytest.raises(MalformedAnswer):
        answer(body)


def test_an_answer_may_say_that_the_request_failed():
    with pytest.raises(FailedAnswer) as caught:
        answer(json.dumps(error("overloaded_error", "Overloaded")))
    assert caught.value.status == 529


async def test_an_overloaded_server_is_asked_again(opened, ask):
    overloaded = (529, error("overloaded_error", "Overloaded"))
    with recorded(overloaded, overloaded, message(text("Buy it."))) as server:
        model = opened(server.base_url, retries=2)
        assert (await model.complete(ask())).choices[0].text == "Buy it."
        await model.close()
    assert len(server.bodies) == 3 and len(opened.waits.seconds) == 2


async def test_a_rate_limit_tells_when_it_is_full_again(opened, ask):
    limits = {"anthropic-ratelimit-requests-remaining": "0", "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:00Z"}
    with recorded((429, error("rate_limit_error", "Slow down."), limits | {"retry-after": "7"}), message(text("Buy it."))) as server:
        model = opened(server.base_url, retries=1)
        await model.complete(ask())
        await model.close()
    assert 7 <= opened.waits.seconds[0] < 8 and len(server.bodies) == 2


@pytest.mark.parametrize(
    ("status", "data", "says"),
    [
        (400, error("invalid_request_error", "prompt is too long: 208310 tokens > 200000 maximum"), "too long"),
        (400, error("invalid_request_error", "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"), "too long"),
        (400, error("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), "out of credit"),
        (402, error("billing_error", "See your plan."), "out of credit"),
        (401, error("authentication_error", "invalid x-api-key"), "refuses the key"),
        (404, error("not_found_error", "model: m"), "has no m"),
    ],
)
async def test_a_lasting_error_is_told_after_one_request(opened, ask, status, data, says):
    with recorded((status, data)) as server:
        model = opened(server.base_url)
        with pytest.raises(ModelError, match=says):
            await model.complete(ask())
        await model.close()
    assert len(server.bodies) == 1


async def test_a_filtered_prompt_is_asked_once(opened, ask):
    with recorded((400, error("invalid_request_error", "Output blocked by content filtering policy"))) as server:
        model = opened(server.base_url)
        with pytest.raises(PromptRefused):
            await model.complete(ask())
        await model.close()
    assert len(server.bodies) == 1


REFUSALS = [
    ("temperature", "`temperature` is deprecated for this model."),
    ("temperature", "temperature: Extra inputs are not permitted"),
    ("output_config", "output_config.format: Extra inputs are not permitted"),
    ("output_config", "This model does not support structured outputs."),
    ("top_k", "`top_k` is not supported"),
    ("top_k", "Bad Request"),
]


@pytest.mark.parametrize(("field", "words"), REFUSALS)
async def test_a_refused_field_costs_one_request_and_only_once(opened, ask, field, words):
    answered = message(text("Buy it."))
    with recorded(lambda body: (400, error("invalid_request_error", words)) if field in body else answered) as server:
        model = opened(server.base_url, retries=0, extra={"top_k": 20})
        request = msgspec.structs.replace(ask(temperature=0.5), schema={"type": "object"})
        await model.complete(request)
        await model.complete(request)
        await model.close()
    assert len(server.bodies) == 3 and field in server.bodies[0] and server.bodies[1] == server.bodies[2]
    assert "system" in server.bodies[2] and server.bodies[2]["max_tokens"] == server.bodies[0]["max_tokens"]


@pytest.mark.parametrize(
    "words", ["system.0.cache_control: Extra inputs are not permitted", "Prompt caching is not supported.", "Bad Request"]
)
async def test_marks_that_are_refused_are_left_out(opened, ask, words):
    answered = message(text("Buy it."))
    with recorded(lambda body: (400, error("invalid_request_error", words)) if "cache_control" in str(body) else answered) as server:
        model = opened(server.base_url, retries=0)
        await model.complete(ask())
        await model.complete(ask())
        await model.close()
    assert len(server.bodies) == 3 and server.bodies[1]["system"] == server.bodies[2]["system"] == "Be brief."


async def test_thinking_stays_where_it_is_the_temperature_that_does_not_go_with_it(opened, ask):
    words = "`temperature` may only be set to 1 when thinking is enabled."
    answered = message(text("Buy it."))
    with recorded(lambda body: (400, error("invalid_request_error", words)) if "temperature" in body else answered) as server:
        model = opened(server.base_url, retries=0, extra={"thinking": {"type": "enabled", "budget_tokens": 1024}})
        await model.complete(ask(temperature=0.5))
        await model.close()
    assert len(server.bodies) == 2 and "thinking" in server.bodies[1]


@pytest.mark.parametrize("words", ["System messages are not supported", "system: Extra inputs are not permitted"])
async def test_a_system_turn_that_is_refused_begins_the_users(opened, ask, words):
    answered = message(text("Buy it."))
    with recorded(lambda body: (400, error("invalid_request_error", words)) if "system" in body else answered) as server:
        model = opened(server.base_url, retries=0)
        await model.complete(ask("Which?"))
        await model.close()
    assert server.bodies[1]["messages"][0]["content"] == [text("Be brief."), text("Which?")]


@asks("write what to buy")
def unusable(words):
    if "Buy" not in words:
        raise AnswerError("write what to buy")
    return parse_argument(words)


async def test_thinking_goes_back_with_the_next_question(opened, ask):
    with recorded(message(THINKING, REDACTED, text("Hm.")), message(text("Buy it."))) as server:
        model = opened(server.base_url)
        assert [said for _, said in await read(model, ask(), unusable, seed=1)] == ["Buy it."]
        await model.close()
    turns = server.bodies[1]["messages"]
    assert [turn["role"] for turn in turns] == ["user", "assistant", "user"]
    assert turns[1]["content"] == [THINKING, REDACTED, text("Hm.")] and "write what to buy" in turns[2]["content"][0]["text"]


@pytest.mark.parametrize(
    "words",
    [
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.1: thinking or redacted_thinking blocks cannot be modified",
    ],
)
async def test_thinking_that_another_server_cannot_check_goes_back_as_text(opened, ask, words):
    def answered(body):
        if "signature" in str(body):
            return 400, error("invalid_request_error", words)
        return message(text("Buy it.")) if len(body["messages"]) > 1 else message(THINKING, text("Hm."))

    with recorded(answered) as server:
        model = opened(server.base_url, retries=0, extra={"thinking": {"type": "adaptive"}})
        await read(model, ask(), unusable, seed=1)
        await model.close()
    assert server.bodies[2]["messages"][1] == {"role": "assistant", "content": [text("Hm.")]} and "thinking" in server.bodies[2]


async def test_an_answer_that_was_cut_off_goes_back_as_text(opened, ask):
    with recorded(message(THINKING, CLICK, stop="max_tokens"), message(text("Buy it."))) as server:
        model = opened(server.base_url)
        await read(model, ask(), unusable, seed=1)
        await model.close()
    assert server.bodies[1]["messages"][1]["content"] == [text('computer {"action":"left_click","coordinate":[7,9]}')]


@pytest.mark.parametrize(
    ("model", "tool", "beta"),
    [
        ("claude-sonnet-4-5", {"type": "computer_20250124"}, "computer-use-2025-01-24"),
        ("claude-opus-4-6", {"type": "computer_20251124"}, "computer-use-2025-11-24"),
        ("claude-sonnet-5-5", {"type": "computer_toolset_20260801"}, None),
    ],
)
async def test_a_call_of_the_computer_is_answered_with_the_error(configured, ask, model, tool, beta):
    call = CLICK if beta else CLICK | {"name": "left_click", "toolset_name": "computer", "input": {"coordinate": [7, 9]}}
    with recorded(message(THINKING, call, stop="tool_use"), message(text("Buy it."))) as server:
        config = configured(server.base_url, provider="anthropic_messages", model=model)
        opened = OpenAIModel(config, provider=serving(config, providers()))
        request = msgspec.structs.replace(ask(images=(b"png",)), screen=Display(width=800, height=600))
        await read(opened, request, unusable, seed=1)
        await opened.close()
    first, second = server.bodies
    display = {"name": "computer", "display_width_px": 800, "display_height_px": 600} if beta else {}
    assert {key: value for key, value in first["tools"][0].items() if key != "configs"} == tool | display
    assert server.headers[0].get("Anthropic-Beta") == beta
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "It was not carried out.", "is_error": True}
    turns = second["messages"]
    assert turns[1]["content"] == [THINKING, call]
    assert turns[2]["content"][0] == result | ({} if beta else {"toolset_name": "computer"})
    assert "write what to buy" in turns[2]["content"][1]["text"]
