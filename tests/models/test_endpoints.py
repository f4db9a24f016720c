"""Several endpoints for one model, and what providers differ in."""

import contextlib
import json
import sys
import types

import msgspec
import pytest

from exact.config import ModelConfig
from exact.errors import ModelError, UsageError
from exact.models.base import Tariff
from exact.models.meter import metered
from exact.models.openai import OpenAIModel
from exact.models.providers import Endpoint, ModelCapabilities, Provider
from exact.models.rate_limiter import RateLimiter
from exact.models.scripted import Cut, DroppedConnection, Hang, Malformed, Question, ScriptedServer, Slow, Status


def numbered(question: Question, sample: int) -> str:
    return f"{question.messages[-1][1]} {(question.seed or 0) + sample}"


class Clock:
    """Waits by going on at once."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.waited.append(seconds)


@contextlib.asynccontextmanager
async def opened(*servers: ScriptedServer, clock: Clock | None = None, retries: int = 2, timeout: float = 20.0, **provider):
    places = tuple(Endpoint(base_url=server.base_url) for server in servers)
    served = Provider(name="many", endpoints=places, **provider)
    clock = clock or Clock()
    config = ModelConfig(model="m", provider="many", retries=retries, timeout=timeout)
    model = OpenAIModel(config, provider=served, sleep=clock, limiters=lambda provider, endpoint: RateLimiter(sleep=clock))
    try:
        yield model
    finally:
        await model.close()


async def test_calls_are_shared_by_the_endpoints(ask):
    async with ScriptedServer(numbered) as a, ScriptedServer(numbered) as b, opened(a, b) as model:
        for seed in range(10):
            assert (await model.complete(ask(seed=seed))).choices[0].text == f"Which? {seed}"
    assert (len(a.bodies), len(b.bodies)) == (5, 5)
    assert model.name == "many/m"


@pytest.mark.parametrize("fault", [Status(500), Status(429), Status(401), Status(404), DroppedConnection(), Malformed(), Cut()])
async def test_where_one_endpoint_fails_another_answers_at_once(ask, fault):
    clock = Clock()
    async with (
        ScriptedServer(numbered, faults=lambda q, t: fault) as ill,
        ScriptedServer(numbered) as well,
        opened(ill, well, clock=clock, retries=0) as model,
    ):
        for seed in range(4):
            assert (await model.complete(ask(seed=seed))).choices[0].text == f"Which? {seed}"
    assert (len(ill.bodies), len(well.bodies)) == (1, 4) and not any(clock.waited)


async def test_a_wrong_request_is_not_tried_elsewhere(ask):
    async with ScriptedServer(numbered, faults=lambda q, t: Status(400, "no")) as a, ScriptedServer(numbered) as b, opened(a, b) as model:
        with pytest.raises(ModelError, match="refuses the request"):
            await model.complete(ask(seed=0))
    assert a.bodies and not b.bodies


async def test_with_all_endpoints_ill_the_error_is_the_last_ones(ask):
    faults = lambda q, t: Status(503, "busy")  # noqa: E731
    async with ScriptedServer(numbered, faults=faults) as a, ScriptedServer(numbered, faults=faults) as b, opened(a, b, retries=2) as model:
        with pytest.raises(ModelError, match="503: busy"):
            await model.complete(ask(seed=0))
    assert len(a.bodies) + len(b.bodies) == 4


async def test_a_key_that_one_endpoint_refuses_does_not_end_the_tries_at_one_that_failed_in_passing(ask):
    async with (
        ScriptedServer(numbered, faults=lambda q, t: None if t else Status(500)) as passing,
        ScriptedServer(numbered, faults=lambda q, t: Status(401)) as refusing,
        opened(passing, refusing, retries=2) as model,
    ):
        assert (await model.complete(ask(seed=0))).choices[0].text == "Which? 0"
    assert (len(passing.bodies), len(refusing.bodies)) == (2, 1)


async def test_a_key_that_one_endpoint_refuses_is_not_the_end_while_another_only_rests(ask):
    async with (
        ScriptedServer(numbered, faults=lambda q, t: Status(401)) as refusing,
        ScriptedServer(numbered) as resting,
        opened(refusing, resting) as model,
    ):
        model._balancer.failed(model.endpoints[1], permanent=False, after=60.0)
        assert (await model.complete(ask(seed=0))).choices[0].text == "Which? 0"
        with pytest.raises(ModelError, match="refuses the key"):
            model._balancer.failed(model.endpoints[1], permanent=True)
            model._balancer._until[0] = 0.0
            await model.complete(ask(seed=1))
    assert (len(refusing.bodies), len(resting.bodies)) == (2, 1)


async def test_a_slow_answer_is_waited_for_and_one_that_never_ends_is_given_up(ask):
    slow = lambda q, t: Slow(pieces=5, pause=0.01)  # noqa: E731
    async with ScriptedServer(numbered, faults=slow) as server, opened(server) as model:
        assert (await model.complete(ask(seed=3))).choices[0].text == "Which? 3"
    endless = lambda q, t: Slow(pieces=50, pause=0.2)  # noqa: E731
    async with ScriptedServer(numbered, faults=endless) as server, opened(server, timeout=0.5) as model:
        with pytest.raises(ModelError, match=r"within 0\.5 s"), metered() as exchanges:
            await model.complete(ask(seed=3))
    assert [exchange.outcome for exchange in exchanges] == ["lost"]


async def test_every_exchange_is_on_the_meter(ask):
    faults = [Status(500), DroppedConnection(), Malformed(), None]
    async with ScriptedServer(numbered, faults=lambda q, t: faults[t]) as server, opened(server, retries=5) as model:
        with metered() as exchanges:
            answer = await model.complete(ask(seed=1))
    assert [exchange.outcome for exchange in exchanges] == ["refused", "lost", "lost", "answered"]
    assert exchanges[-1].usage == answer.usage and answer.usage.input_tokens == server.input_tokens


@pytest.mark.parametrize(
    ("takes", "field", "note"),
    [
        (ModelCapabilities(seed=False), "seed", None),
        (ModelCapabilities(logprobs=False), "logprobs", "logprobs"),
        (ModelCapabilities(sampling=False), "temperature", "temperature and top_p"),
        (ModelCapabilities(both=False), "top_p", "top_p"),
        (ModelCapabilities(json_schema=False), "response_format", None),
        (ModelCapabilities(limit="max_completion_tokens"), "max_tokens", None),
    ],
)
async def test_a_feature_declared_unsupported_is_not_sent_and_is_noted(ask, takes, field, note):
    request = msgspec.structs.replace(ask(seed=1, logprobs=True, top_p=0.5), schema={"type": "object"})
    async with ScriptedServer(numbered) as server, opened(server, capabilities=takes) as model:
        answer = await model.complete(request)
    assert field not in server.bodies[0]
    assert (note in answer.notes) if note else not answer.notes


@pytest.mark.parametrize("field", ["seed", "logprobs", "response_format"])
async def test_a_refused_feature_is_left_out_from_then_on(ask, field):
    def faults(question, times):
        return Status(400, f"{field} is not supported", param=field) if field in server.bodies[-1] else None

    request = msgspec.structs.replace(ask(seed=1, logprobs=True), schema={"type": "object"})
    async with ScriptedServer(numbered, faults=faults) as server, opened(server) as model:
        await model.complete(request)
        await model.complete(request)
    assert [field in body for body in server.bodies] == [True, False, False]


async def test_a_schema_is_sent_where_it_is_taken(ask):
    request = msgspec.structs.replace(ask(), schema={"type": "object"})
    async with ScriptedServer(numbered) as server, opened(server) as model:
        await model.complete(request)
    assert server.bodies[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}


async def test_without_a_system_turn_its_words_come_first_in_the_users(ask):
    async with ScriptedServer(numbered) as server, opened(server, capabilities=ModelCapabilities(system=False)) as model:
        await model.complete(ask())
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Be brief.\nWhich?"}]


async def test_a_picture_for_a_model_without_eyes_is_a_note(ask):
    async with ScriptedServer(numbered) as server, opened(server, capabilities=ModelCapabilities(images=False)) as model:
        answer = await model.complete(ask(images=(b"png",)))
    assert "takes none" in server.bodies[0]["messages"][1]["content"] and answer.notes == ("pictures",)


async def test_without_n_samples_are_asked_for_in_parallel_at_once(ask):
    async with ScriptedServer(numbered) as server, opened(server, capabilities=ModelCapabilities(n=False)) as model:
        answer = await model.complete(ask(n=3, seed=5))
    assert [choice.text for choice in answer.choices] == ["Which? 5", "Which? 6", "Which? 7"]
    assert all("n" not in body for body in server.bodies) and len(server.bodies) == 3


async def test_further_fields_of_the_configuration_are_sent(ask):
    async with ScriptedServer(numbered) as server:
        config = ModelConfig(model="m", base_url=server.base_url, extra={"reasoning_effort": "low"})
        model = OpenAIModel(config)
        await model.complete(ask())
        await model.close()
    assert server.bodies[0]["reasoning_effort"] == "low"


async def test_azure_is_asked_by_deployment_and_version_with_its_key(ask, monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key-1")
    async with ScriptedServer(numbered) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url.removesuffix("/v1"))
        model = OpenAIModel(ModelConfig(model="gpt-4o", provider="azure"))
        assert model.name == "azure/gpt-4o" and model.price
        await model.complete(ask(seed=1))
        await model.close()
    assert server.headers[0]["api-key"] == "azure-key-1"
    assert server.paths == ["/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21"]


async def test_a_token_is_asked_for_anew_for_each_request(ask, monkeypatch):
    given = iter(["token-1", "token-2"])
    monkeypatch.setitem(sys.modules, "my_tokens", types.SimpleNamespace(fresh=lambda: next(given)))
    async with ScriptedServer(numbered) as server, opened(server, token="my_tokens:fresh") as model:
        await model.complete(ask(seed=1))
        await model.complete(ask(seed=2))
    assert [headers["authorization"] for headers in server.headers] == ["Bearer token-1", "Bearer token-2"]


async def test_a_source_of_tokens_that_fails_is_tried_again_and_then_a_model_error(ask, monkeypatch):
    def fresh() -> str:
        if next(tries):
            return "token-1"
        raise RuntimeError("the login has expired")

    tries = iter([False, True, False, False])
    monkeypatch.setitem(sys.modules, "my_tokens", types.SimpleNamespace(fresh=fresh))
    async with ScriptedServer(numbered) as server, opened(server, token="my_tokens:fresh", retries=1) as model:
        await model.complete(ask(seed=1))
        with metered() as exchanges, pytest.raises(ModelError, match=r"no token .*RuntimeError: the login has expired"):
            await model.complete(ask(seed=2))
    assert len(server.headers) == 1 and {exchange.outcome for exchange in exchanges} == {"refused"}


async def test_azures_own_token_is_asked_for_its_scope_and_sent(ask, monkeypatch):
    scopes: list[str] = []

    def provider(credential: object, scope: str):
        scopes.append(f"{credential} {scope}")

        async def token() -> str:
            return "entra-token-1"

        return token

    identity = types.SimpleNamespace(DefaultAzureCredential=lambda: "default", get_bearer_token_provider=provider)
    for name in ("azure", "azure.identity"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "azure.identity.aio", identity)
    async with ScriptedServer(numbered) as server:
        monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.base_url.removesuffix("/v1"))
        model = OpenAIModel(ModelConfig(model="gpt-4o", provider="azure_token"))
        await model.complete(ask())
        await model.close()
    assert scopes == ["default https://cognitiveservices.azure.com/.default"]
    assert server.headers[0]["authorization"] == "Bearer entra-token-1" and "api-key" not in server.headers[0]
    assert server.paths[0].startswith("/openai/deployments/gpt-4o/chat/completions?api-version=")


@pytest.mark.parametrize(("read", "believed"), [(100, 80), (10, 10)])
async def test_tokens_that_the_server_had_cached_are_counted_as_far_as_they_were_read(ask, read, believed):
    usage = {"prompt_tokens": read, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}
    body = {"choices": [{"index": 0, "message": {"content": "yes"}, "finish_reason": "stop"}], "model": "m", "usage": usage}
    async with ScriptedServer(numbered, faults=lambda q, times: Malformed(json.dumps(body))) as server, opened(server) as model:
        answer = await model.complete(ask())
    assert (answer.usage.input_tokens, answer.usage.cached_tokens) == (read, believed)
    assert Tariff(ModelConfig(model="gpt-4o")).cost(answer.usage)


@pytest.mark.parametrize("token", ["nowhere", "no_such_module:f", "json:no_such"])
def test_a_missing_token_source_is_a_usage_error(token):
    served = Provider(name="x", endpoints=(Endpoint(base_url="http://127.0.0.1:1/v1"),), token=token)
    with pytest.raises(UsageError, match="token"):
        OpenAIModel(ModelConfig(model="m"), provider=served)


async def test_an_endpoint_that_never_answers_is_lost_with_the_deadline(ask):
    async with ScriptedServer(numbered, faults=lambda q, t: Hang()) as server, opened(server, timeout=0.3) as model:
        with metered() as exchanges, pytest.raises(ModelError, match="did not answer within"):
            await model.complete(ask(n=2))
    assert [exchange.outcome for exchange in exchanges] == ["lost"]


async def test_environment_variables_for_openai_add_headers_to_no_endpoint(ask, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Mine: 1\nAuthorization: Bearer other")
    async with ScriptedServer(numbered) as server, opened(server) as model:
        await model.complete(ask())
    sent = server.headers[0]
    assert not {"openai-organization", "openai-project", "x-mine"} & set(sent)
    assert sent["authorization"] == "Bearer none" and sent["user-agent"].startswith("exact/")
