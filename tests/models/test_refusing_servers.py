"""Servers that refuse something of the request, in words of their own."""

import json

import msgspec
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from exact.errors import ModelError, PromptRefused
from exact.models.openai import OpenAIModel
from exact.models.providers import ModelCapabilities, Provider
from tests.http_server import BriefServer

OPTIONS = {
    "top_k": 20, "min_p": 0.1, "presence_penalty": 0.1, "frequency_penalty": 0.1, "repetition_penalty": 1.1, "stop": ["x"], "user": "u",
    "reasoning_effort": "low", "service_tier": "flex", "chat_template_kwargs": {"enable_thinking": False}, "top_logprobs": 5,
    "parallel_tool_calls": False, "verbosity": "low", "metadata": {}, "store": False,
}  # fmt: skip
FIELDS = [*OPTIONS, "temperature", "top_p", "seed", "logprobs", "max_tokens"]
WORDINGS = [
    lambda field: (400, {"error": {"message": f"Unsupported parameter: '{field}' is not supported with this model.", "param": field}}),
    lambda field: (422, {"detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": "Extra inputs are not permitted"}]}),
    lambda field: (400, {"error": {"code": "invalid_request_error", "message": f"`{field}` is deprecated for this model."}}),
    lambda field: (400, {"message": "property is unsupported, please read the manual"}),
    lambda field: (400, {"error": "Bad Request"}),
]


def completion(text="Buy it."):
    return {"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}


class Server:
    """A server of which `refuses(body)` gives a status and an error, or None."""

    def __init__(self, http: HTTPServer, refuses) -> None:
        self.bodies, self.refuses = [], refuses
        self.base_url = f"http://127.0.0.1:{http.port}/v1"
        http.expect_request("/v1/chat/completions").respond_with_handler(self.answer)

    def answer(self, request):
        self.bodies.append(json.loads(request.data))
        status, data = self.refuses(self.bodies[-1]) or (200, completion())
        return Response(json.dumps(data), status=status, content_type="application/json")


@pytest.fixture
def http():
    server = BriefServer(host="127.0.0.1")
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("wording", range(len(WORDINGS)))
@pytest.mark.parametrize("field", FIELDS)
async def test_a_refused_field_costs_one_request_and_only_once(http, configured, ask, field, wording):
    server = Server(http, lambda body: WORDINGS[wording](field) if field in body else None)
    model = OpenAIModel(configured(server.base_url, extra=OPTIONS, retries=0))
    asked = ask(seed=1, logprobs=True, temperature=0.5, top_p=0.9)
    first, second = await model.complete(asked), await model.complete(asked)
    await model.close()
    assert len(server.bodies) == 3 and first.choices[0].text == second.choices[0].text == "Buy it."
    assert field in server.bodies[0] and field not in server.bodies[2] and server.bodies[1] == server.bodies[2]
    assert any(note in field or field in note for note in second.notes) or field in ("seed", "max_tokens")


async def test_what_is_named_is_left_out_alone(http, configured, ask):
    server = Server(http, lambda body: WORDINGS[0]("min_p") if "min_p" in body else None)
    model = OpenAIModel(configured(server.base_url, extra=OPTIONS))
    answer = await model.complete(ask())
    await model.close()
    assert set(server.bodies[0]) - set(server.bodies[1]) == {"min_p"} and answer.notes == ("min_p",)


@pytest.mark.parametrize("takes", ["grammar", "structured_outputs", "ebnf"])
@pytest.mark.parametrize("message", ["failed to parse grammar", "Guided decoding is not supported", "Unsupported parameter: {field}"])
async def test_a_refused_grammar_is_left_out_alone(http, configured, ask, takes, message):
    server = Server(http, lambda body: (400, {"error": message.format(field=takes)}) if takes in body else None)
    capabilities = ModelCapabilities(grammar=takes)
    model = OpenAIModel(configured(server.base_url), provider=Provider(base_url=server.base_url, capabilities=capabilities))
    request = msgspec.structs.replace(ask(seed=1), grammar="root ::= x")
    answers = [await model.complete(request) for _ in range(2)]
    await model.close()
    assert [takes in body for body in server.bodies] == [True, False, False] and "seed" in server.bodies[-1]
    assert all(answer.notes == ("grammar",) for answer in answers)


async def test_a_refusal_for_another_reason_teaches_nothing(http, configured, ask):
    reasons = iter([(400, {"error": "no"})] * 3)
    server = Server(http, lambda body: next(reasons, None))
    model = OpenAIModel(configured(server.base_url))
    with pytest.raises(ModelError, match=r"refuses the request \(400: no\)"):
        await model.complete(ask(seed=1))
    await model.complete(ask(seed=1))
    await model.close()
    assert server.bodies[-1] == server.bodies[0]


async def test_a_picture_that_a_text_model_answers_with_500_is_left_out(http, configured, ask):
    def refuses(body):
        return (500, {"error": {"message": "image input is not supported"}}) if isinstance(body["messages"][-1]["content"], list) else None

    server = Server(http, refuses)
    model = OpenAIModel(configured(server.base_url))
    answer = await model.complete(ask(images=(b"png",)))
    await model.complete(ask(images=(b"png",)))
    await model.close()
    assert len(server.bodies) == 3 and answer.notes == ("pictures",)


@pytest.mark.parametrize(("status", "code"), [(400, "content_filter"), (403, "moderation"), (422, "data_inspection_failed")])
async def test_a_filtered_prompt_is_asked_once_and_is_no_outage(http, configured, ask, status, code):
    server = Server(http, lambda body: (status, {"error": {"code": code, "message": "No."}}))
    model = OpenAIModel(configured(server.base_url))
    with pytest.raises(PromptRefused, match="refuses the prompt"):
        await model.complete(ask(seed=1))
    await model.close()
    assert len(server.bodies) == 1


async def test_a_prompt_that_is_too_long_is_asked_once(http, configured, ask):
    server = Server(http, lambda body: (400, {"error": {"message": "This model's maximum context length is 8192 tokens."}}))
    model = OpenAIModel(configured(server.base_url))
    with pytest.raises(ModelError, match="too long"):
        await model.complete(ask(seed=1))
    await model.close()
    assert len(server.bodies) == 1


async def test_a_server_without_n_answers_all_choices(http, configured, ask):
    server = Server(http, lambda body: (400, {"error": "only one candidate is offered"}) if body.get("n", 1) > 1 else None)
    model = OpenAIModel(configured(server.base_url))
    first, second = await model.complete(ask(n=3)), await model.complete(ask(n=3))
    await model.close()
    assert len(first.choices) == len(second.choices) == 3 and len(server.bodies) == 1 + 3 + 3


TOP_WORDINGS = [
    "Invalid value for 'top_logprobs': must be less than or equal to 5.",
    "top_logprobs: Input should be between 0 and 5",
    "The value of topLogprobs is above the maximum of 5.",
    "With logprobs, top_logprobs must be an integer from 0 to 5",
]


@pytest.mark.parametrize("wording", TOP_WORDINGS)
async def test_fewer_likeliest_tokens_are_requested_where_there_are_too_many(http, configured, ask, wording):
    server = Server(http, lambda body: (400, {"error": {"message": wording}}) if body.get("top_logprobs", 0) > 5 else None)
    model = OpenAIModel(configured(server.base_url))
    for _ in range(2):
        await model.complete(ask(logprobs=True, top_logprobs=20))
    await model.close()
    assert [body.get("top_logprobs") for body in server.bodies] == [20, 5, 5]


@pytest.mark.parametrize("wording", ["Unsupported parameter: 'top_logprobs'", "Unknown field top_logprobs in request", "Bad Request"])
async def test_a_server_without_likeliest_tokens_is_asked_without(http, configured, ask, wording):
    server = Server(http, lambda body: (400, {"error": {"message": wording}}) if "top_logprobs" in body else None)
    model = OpenAIModel(configured(server.base_url))
    for _ in range(2):
        answer = await model.complete(ask(logprobs=True, top_logprobs=20))
    await model.close()
    assert ["top_logprobs" in body for body in server.bodies] == [True, False, False]
    assert {"top_logprobs", "logprobs"} & set(answer.notes)
