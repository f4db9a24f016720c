import asyncio
import base64
import contextlib
import json
import socket
import traceback
from collections.abc import AsyncIterator

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.errors import ModelError, UsageError
from exact.models.base import Choice
from exact.models.openai import OpenAIModel, sampling
from exact.models.rate_limiter import RateLimiter
from exact.models.scripted import AtMost, Cut, DroppedConnection, Fault, Hang, Malformed, Question, Reply, ScriptedServer, Status

KEY = "sk-test-0123456789abcdef"


def numbered(question: Question, sample: int) -> str:
    """Return an answer that states its sample's seed."""
    return f"{question.messages[-1][1]} {(question.seed or 0) + sample}"


def first(*faults: Fault):
    """Return faults for the first requests of a question."""
    return lambda question, times: faults[times] if times < len(faults) else None


class Waits:
    """A clock that does not wait."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def now(self) -> float:
        return sum(self.seconds)


@contextlib.asynccontextmanager
async def opened(config, waits: Waits | None = None) -> AsyncIterator[OpenAIModel]:
    waits = waits or Waits()
    model = OpenAIModel(config, sleep=waits, limiters=lambda provider, endpoint: RateLimiter(clock=waits.now, sleep=waits))
    try:
        yield model
    finally:
        await model.close()


async def failure(config, request, waits: Waits | None = None) -> str:
    async with opened(config, waits) as model:
        with pytest.raises(ModelError) as caught:
            await model.complete(request)
    text = str(caught.value)
    assert "\n" not in text
    assert KEY not in "".join(traceback.format_exception(caught.value))
    return text


async def test_one_call_gives_n_choices_their_usage_and_the_servers_json(configured, ask):
    async with ScriptedServer(numbered) as server, opened(configured(server.base_url, price={"input": 1.0, "output": 2.0})) as model:
        answer = await model.complete(ask(n=3, seed=10))
    assert [choice.text for choice in answer.choices] == ["Which? 10", "Which? 11", "Which? 12"]
    assert len(server.bodies) == 1 and json.loads(answer.raw)["choices"][2]["message"]["content"] == "Which? 12"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (server.input_tokens, server.output_tokens)


async def test_the_sent_request_is_the_one_asked_for(configured, ask):
    async with ScriptedServer(numbered) as server, opened(configured(server.base_url)) as model:
        await model.complete(ask(temperature=0.3, top_p=0.9, max_tokens=7, seed=5, logprobs=True))
    sent = server.bodies[0]
    assert sent.pop("messages")[0] == {"role": "system", "content": "Be brief."}
    assert sent == {"model": "m", "temperature": 0.3, "top_p": 0.9, "max_tokens": 7, "seed": 5, "logprobs": True}
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


async def test_an_image_arrives_byte_for_byte(configured, ask):
    picture = bytes(range(256))
    async with ScriptedServer(lambda q, i: str(q.images[0] == picture)) as server, opened(configured(server.base_url)) as model:
        answer = await model.complete(ask(images=(picture,)))
    url = server.bodies[0]["messages"][1]["content"][1]["image_url"]["url"]
    assert answer.choices[0].text == "True" and url == f"data:image/png;base64,{base64.b64encode(picture).decode()}"


async def test_token_ids_and_logprobs_are_kept_where_given(configured, ask):
    reply = Reply(text="ab", logprobs=(-0.5, -1.25), token_ids=(17, 4))
    async with ScriptedServer(lambda q, i: reply) as server, opened(configured(server.base_url)) as model:
        answer = await model.complete(ask())
    assert answer.choices == (Choice(text="ab", finish="stop", token_ids=(17, 4), logprobs=(-0.5, -1.25)),)


@pytest.mark.parametrize("given", [0, 1, 2])
async def test_choices_that_a_server_leaves_out_are_asked_for_one_by_one(configured, ask, given):
    def faults(question, times):
        return AtMost(given) if question.n > 1 else None

    async with ScriptedServer(numbered, faults=faults) as server, opened(configured(server.base_url)) as model:
        answer = await model.complete(ask(n=4, seed=10))
    assert [choice.text for choice in answer.choices] == [f"Which? {10 + i}" for i in range(4)]
    assert answer.usage.input_tokens == server.input_tokens and len(json.loads(answer.raw)) == 5 - given


async def test_a_server_without_n_is_asked_for_several_only_once(configured, ask):
    faults = lambda question, times: AtMost(1) if question.n > 1 else None  # noqa: E731
    async with ScriptedServer(numbered, faults=faults) as server, opened(configured(server.base_url)) as model:
        await model.complete(ask("a", n=2))
        answer = await model.complete(ask("b", n=2, seed=0))
    assert [choice.text for choice in answer.choices] == ["b 0", "b 1"]
    assert [body.get("n", 1) for body in server.bodies] == [2, 1, 1, 1]


async def test_a_server_that_refuses_n_is_asked_one_by_one(configured, ask):
    faults = lambda question, times: Status(400, "n must be 1", param="n") if question.n > 1 else None  # noqa: E731
    async with ScriptedServer(numbered, faults=faults) as server, opened(configured(server.base_url)) as model:
        answer = await model.complete(ask(n=2, seed=0))
    assert [choice.text for choice in answer.choices] == ["Which? 0", "Which? 1"]


async def test_a_model_that_wants_max_completion_tokens_gets_them(configured, ask, httpserver: HTTPServer):
    def handler(request: Request) -> Response:
        if "max_tokens" in request.json:
            error = {"message": "Unsupported parameter: use 'max_completion_tokens' instead", "param": "max_tokens"}
            return Response(json.dumps({"error": error}), 400)
        return Response(json.dumps({"choices": [{"message": {"content": str(request.json["max_completion_tokens"])}}]}))

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(handler)
    async with opened(configured(httpserver.url_for("/v1"), retries=0)) as model:
        assert (await model.complete(ask(max_tokens=9))).choices[0].text == "9"


@pytest.mark.parametrize(
    ("reply", "choice"),
    [
        (Reply(text="I think", finish="length"), Choice(text="I think", finish="length")),
        (Reply(refusal="I cannot help with that."), Choice(text="I cannot help with that.", finish="refusal")),
        (Reply(finish="content_filter"), Choice(text="", finish="content_filter")),
    ],
)
async def test_the_finish_reason_of_a_choice_is_reported_unchanged(configured, ask, reply, choice):
    async with ScriptedServer(lambda q, i: reply) as server, opened(configured(server.base_url)) as model:
        assert (await model.complete(ask())).choices == (choice,)


async def test_no_choices_at_all_are_empty_ones(configured, ask):
    async with ScriptedServer(numbered, faults=lambda q, t: AtMost(0)) as server, opened(configured(server.base_url)) as model:
        assert (await model.complete(ask(n=2))).choices == (Choice(text="", finish="empty"),) * 2


async def test_a_429_is_retried_after_the_time_the_server_names(configured, ask):
    waits = Waits()
    async with (
        ScriptedServer(numbered, faults=first(Status(429, retry_after=3), Status(429, retry_after=0.25))) as server,
        opened(configured(server.base_url), waits) as model,
    ):
        answer = await model.complete(ask(seed=1))
    assert answer.choices[0].text == "Which? 1"
    assert 3 <= waits.seconds[0] <= 3.3 and 0.25 <= waits.seconds[1] <= 0.275


async def test_a_429_that_asks_for_more_than_the_time_out_fails_at_once(configured, ask):
    waits = Waits()
    async with ScriptedServer(numbered, faults=first(Status(429, retry_after=60))) as server:
        text = await failure(configured(server.base_url, timeout=5.0), ask(), waits)
    assert "60 s" in text and "passes its timeout" in text and waits.seconds == []


@pytest.mark.parametrize("fault", [Status(500), Status(503), Status(429), DroppedConnection(), Malformed(), Malformed("<html>"), Cut()])
async def test_a_passing_fault_is_retried(configured, ask, fault):
    async with ScriptedServer(numbered, faults=first(fault)) as server, opened(configured(server.base_url)) as model:
        assert (await model.complete(ask(seed=7))).choices[0].text == "Which? 7"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("said", ["Loading model", "Model m is currently loading", "The server is not ready"])
async def test_a_server_that_loads_the_model_is_waited_for_whatever_the_retries(configured, ask, said):
    waits = Waits()
    fault = lambda q, times: Status(503, said) if times < 30 else None  # noqa: E731
    async with ScriptedServer(numbered, faults=fault) as server, opened(configured(server.base_url, retries=0), waits) as model:
        assert (await model.complete(ask(seed=7))).choices[0].text == "Which? 7"
    assert len(waits.seconds) == 30 and max(waits.seconds) < 2


async def test_a_server_that_loads_the_model_for_longer_than_the_timeout_is_an_error_with_the_way_out(configured, ask):
    async with ScriptedServer(numbered, faults=lambda q, t: Status(503, "Loading model", retry_after=9)) as server:
        text = await failure(configured(server.base_url, timeout=8.0), ask())
    assert "m at http" in text and "is not ready (503: Loading model)" in text and "raise the model's timeout" in text


@pytest.mark.parametrize(
    ("fault", "way_out"),
    [
        (Status(500, "out of memory"), "out of memory), 3 times: try again later"),
        (Status(429, "slow down"), "fewer workers"),
        (DroppedConnection(), "is the server running"),
        (Malformed('{"choices": 1}'), "OpenAI-compatible"),
        (Malformed('{"error": "no"}'), "choices"),
    ],
)
async def test_a_lasting_fault_is_raised_after_the_configured_retries(configured, ask, fault, way_out):
    async with ScriptedServer(numbered, faults=lambda q, t: fault) as server:
        text = await failure(configured(server.base_url, retries=2), ask())
    assert way_out in text and "3 times" in text and len(server.bodies) == 3


@pytest.mark.parametrize(
    ("fault", "way_out"),
    [
        (Status(401, f"Incorrect API key provided: {KEY}"), "set TEST_MODEL_KEY"),
        (Status(403, f"Bearer {KEY} may not"), "set TEST_MODEL_KEY"),
        (Status(404, "no such model"), "has no m (404: "),
        (Status(400, "temperature too high"), "refuses the request (400: "),
        (Status(429, "pay first", error_code="insufficient_quota"), "add credit"),
    ],
)
async def test_a_refusal_is_raised_at_once_with_the_way_out_and_without_the_key(configured, ask, fault, way_out):
    async with ScriptedServer(numbered, faults=lambda q, t: fault) as server:
        assert way_out in await failure(configured(server.base_url), ask())
    assert len(server.bodies) == (4 if fault.code == 400 else 1)  # 400: without temperature, all options, the system turn


@pytest.mark.parametrize(
    ("key", "echo"), [("plain-0123456789", "plain-0123456789"), ("plain-0123456789", "sk-pr****wxyz"), (KEY, f"{KEY}x")]
)
async def test_no_key_gets_into_an_error_not_even_half_hidden(configured, ask, monkeypatch, key, echo):
    monkeypatch.setenv("TEST_MODEL_KEY", key)
    async with ScriptedServer(numbered, faults=lambda q, t: Status(401, f"bad key {echo}.")) as server:
        text = await failure(configured(server.base_url), ask())
    assert "(401: bad key " in text and echo not in text and "wxyz" not in text


async def test_a_server_that_never_answers_is_left_at_the_time_out(configured, ask):
    async with ScriptedServer(numbered, faults=lambda q, t: Hang()) as server:
        assert "within 0.2 s" in await failure(configured(server.base_url, timeout=0.2), ask())


async def test_a_refused_connection_names_the_base_url(configured, ask):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    assert f"cannot reach {url} (" in await failure(configured(url, retries=1), ask())


def test_a_missing_key_is_named_before_anything_is_sent(configured, monkeypatch):
    monkeypatch.delenv("TEST_MODEL_KEY")
    with pytest.raises(UsageError, match="TEST_MODEL_KEY"):
        OpenAIModel(configured("https://api.openai.com/v1"))


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://a/v1", "http://", "http://[::1/v1"])
def test_a_base_url_that_is_none_is_a_usage_error(configured, url):
    with pytest.raises(UsageError, match="base_url"):
        OpenAIModel(configured(url))


async def test_on_loopback_no_key_is_needed_and_no_proxy_used(configured, ask, monkeypatch):
    monkeypatch.delenv("TEST_MODEL_KEY")
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with ScriptedServer(numbered) as server, opened(configured(server.base_url, retries=0)) as model:
        assert (await model.complete(ask(seed=1))).choices[0].text == "Which? 1"


@pytest.mark.parametrize("n", [1, 3])
async def test_a_cancelled_call_leaves_no_task(configured, ask, n):
    came = asyncio.Event()

    def faults(question, times):
        if len(server.bodies) == n:
            came.set()
        return AtMost(1) if question.n > 1 else Hang()

    async with ScriptedServer(numbered, faults=faults) as server, opened(configured(server.base_url)) as model:
        before = asyncio.all_tasks()
        call = asyncio.create_task(model.complete(ask(n=n, seed=0)))
        await came.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        left = {task for task in asyncio.all_tasks() - before if "ScriptedServer" not in repr(task)}
    assert not left


async def test_one_failed_call_of_several_ends_the_others(configured, ask):
    def faults(question, times):
        return AtMost(1) if question.n > 1 else Status(404, "no") if question.seed == 1 else Hang()

    async with ScriptedServer(numbered, faults=faults) as server:
        assert "has no m" in await failure(configured(server.base_url), ask(n=3, seed=0))


def test_a_name_tells_the_endpoint(configured):
    assert OpenAIModel(configured("https://api.openai.com/v1")).name == "openai/m"
    assert OpenAIModel(configured("http://127.0.0.1:8000/v1")).name == "127.0.0.1/m"


def test_sampling_is_the_configurations(configured):
    given = sampling(configured("http://127.0.0.1/v1", temperature=0.2, top_p=0.5, max_tokens=9, logprobs=True))
    assert (given.temperature, given.top_p, given.max_tokens, given.logprobs) == (0.2, 0.5, 9, True)
