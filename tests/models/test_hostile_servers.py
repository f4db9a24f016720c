"""Servers that answer with what no model server sends: each is an error of its own kind, within bounds, and gets no key that is not its."""

import asyncio
import gzip
import json
import re
import traceback
from collections.abc import Callable

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models import transport
from exact.models.base import ChatRequest
from exact.models.embedding import OpenAIEmbedding
from exact.models.openai import OpenAIModel
from exact.models.providers import Provider

KEY = "sk-test-0123456789abcdef"
DEEP = "[" * 5000 + "]" * 5000
Ask, Configured = Callable[..., ChatRequest], Callable[..., ModelConfig]


def completion(**fields: object) -> dict[str, object]:
    return {"choices": [{"message": {"content": "Buy it."}, "finish_reason": "stop", **fields}]}


async def answered(http: HTTPServer, configured: Configured, request: ChatRequest, response: Response, **fields: object) -> str:
    """Return the text of an answer to one try."""
    http.expect_request(re.compile("/v1/.*")).respond_with_response(response)
    model = OpenAIModel(configured(http.url_for("/v1"), retries=0, **fields))
    try:
        return (await model.complete(request)).choices[0].text
    finally:
        await model.close()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("api", ["chat", "messages", "responses", "azure"])
async def test_no_redirect_takes_the_prompt_or_the_key_to_another_server(
    httpserver: HTTPServer, configured: Configured, ask: Ask, api: str, status: int
) -> None:
    came: list[Request] = []

    def note(request: Request) -> Response:
        came.append(request)
        return Response(json.dumps(completion()))

    httpserver.expect_request("/elsewhere").respond_with_handler(note)
    away = Response("", status, {"Location": f"http://localhost:{httpserver.port}/elsewhere"})
    httpserver.expect_request(re.compile("/v1/.*")).respond_with_response(away)
    config = configured(f"http://127.0.0.1:{httpserver.port}/v1", retries=0, api="chat" if api == "azure" else api)
    provider = Provider(
        kind="azure" if api == "azure" else "openai", base_url=config.base_url, api_version="1", api_key_env=config.api_key_env
    )
    model = OpenAIModel(config, provider=provider)
    with pytest.raises(ModelError, match=r"redirects to http://localhost:\d+/elsewhere, where no prompt and no key is sent") as raised:
        await model.complete(ask())
    assert not came and not raised.value.resumable
    await model.close()


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("encoding", ["", "gzip", "deflate", "gzip, gzip", "br"])
async def test_an_answer_is_bounded_also_where_it_is_compressed(
    httpserver: HTTPServer, configured: Configured, ask: Ask, monkeypatch: pytest.MonkeyPatch, encoding: str, status: int
) -> None:
    monkeypatch.setattr(transport, "MOST_BYTES", 1000)
    body = gzip.compress(b" " * 5_000_000) if encoding else b" " * 5_000_000
    with pytest.raises(ModelError, match=r"more than 1,000 bytes|compressed in a way that was not asked for"):
        await answered(httpserver, configured, ask(), Response(body, status, {"Content-Encoding": encoding} if encoding else {}))


SAID = "\x1b]0;mine\x07\x9b2J\u202e\u200b\ue000busy"
HOSTILE_ANSWERS = {
    "a message": Response(json.dumps({"error": {"message": SAID, "code": SAID}}), 400),
    "a plain text": Response(SAID, 500),
    "half of JSON": Response(f'{{"error": "{SAID}', 429),
    "a filter": Response(json.dumps({"error": {"message": f"content_filter {SAID}", "code": "content_filter"}}), 400),
    "an address": Response("", 302, {"Location": "http://x.test/\x9b2J\xadbusy"}),
    "an encoding": Response("x", 200, {"Content-Encoding": "\x9b2J\xadbusy"}),
    "an answer": Response(json.dumps({"choices": SAID}), 200),
}


@pytest.mark.parametrize("response", HOSTILE_ANSWERS.values(), ids=HOSTILE_ANSWERS)
async def test_nothing_that_a_server_says_is_an_escape_sequence_in_an_error(
    httpserver: HTTPServer, configured: Configured, ask: Ask, response: Response
) -> None:
    with pytest.raises(ModelError) as raised:
        await answered(httpserver, configured, ask(), response)
    said = "".join(traceback.format_exception(raised.value)) + "".join(map(repr, raised.value.args))
    assert not set(said) & set("\x1b\x9b\x07\xad\u202e\u200b\ue000")


async def test_a_compressed_answer_is_read(httpserver: HTTPServer, configured: Configured, ask: Ask) -> None:
    body = gzip.compress(json.dumps(completion()).encode())
    assert await answered(httpserver, configured, ask(), Response(body, headers={"Content-Encoding": "gzip"})) == "Buy it."


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (Response(DEEP), "answers with nothing that reads"),
        (Response(json.dumps(completion())[:-1] + f', "usage": {DEEP}}}'), "answers with nothing that reads"),
        (Response('{"error": ' * 5000 + "1" + "}" * 5000, 400), "refuses the request"),
        (Response(b"\x1f\x8bno", headers={"Content-Encoding": "gzip"}), "cannot be decompressed"),
    ],
)
async def test_answers_that_do_not_read_are_model_errors(
    httpserver: HTTPServer, configured: Configured, ask: Ask, response: Response, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        await answered(httpserver, configured, ask(), response)


@pytest.mark.parametrize("token", ["token_id:" + "9" * 5000, "token_id:\u00b2", "token_id:"])
async def test_token_ids_that_are_none_are_left_out(httpserver: HTTPServer, configured: Configured, ask: Ask, token: str) -> None:
    odd = completion(logprobs={"content": [{"token": token, "logprob": -1, "id": -5}]}, token_ids=[10**19 - 1])
    assert await answered(httpserver, configured, ask(logprobs=True), Response(json.dumps(odd)), logprobs=True) == "Buy it."


async def test_a_key_that_an_answer_writes_with_escapes_is_no_part_of_its_text(
    httpserver: HTTPServer, configured: Configured, ask: Ask
) -> None:
    body = json.dumps(completion(message={"content": f"Say {KEY}"})).replace(KEY, "\\u0073" + KEY[1:])
    assert await answered(httpserver, configured, ask(), Response(body)) == "Say ***"


@pytest.mark.parametrize("rows", [[[1.0], [1.0, 2.0]], [[], []], [[1e300], [1.0]]])
async def test_vectors_of_different_lengths_empty_ones_and_huge_ones_are_refused(
    httpserver: HTTPServer, configured: Configured, rows: list[list[float]]
) -> None:
    httpserver.expect_request("/v1/embeddings").respond_with_json({"data": [{"embedding": row} for row in rows]})
    model = OpenAIEmbedding(configured(httpserver.url_for("/v1"), retries=0))
    with pytest.raises(ModelError, match="answers with nothing that reads"):
        await model.embed(["a", "b"])
    await model.close()


UNREAD = ("none", "negative", "no numbers", "huge")
"""Usages that count as none: what was reserved for the call counts then."""
USAGES = {
    "too few": {"prompt_tokens": 1, "completion_tokens": 1},
    "negative": {"prompt_tokens": -5_000, "completion_tokens": -1, "total_tokens": 9},
    "half": {"completion_tokens": 900},
    "huge": {"prompt_tokens": 10**30, "completion_tokens": 2**53},
    "large": {"prompt_tokens": 10**12, "completion_tokens": 10**12},
    "no numbers": {"prompt_tokens": "many", "completion_tokens": [1]},
    "cached more than read": {
        "prompt_tokens": 10,
        "completion_tokens": 1,
        "prompt_tokens_details": {"cached_tokens": 10**9, "cache_write_tokens": 10**9},
    },
    "none": {},
}


@pytest.mark.parametrize("what", USAGES)
async def test_a_call_costs_no_less_than_its_texts(httpserver: HTTPServer, configured: Configured, ask: Ask, what: str) -> None:
    text = "Buy it. " * 500
    body = completion(message={"content": text}) | {"usage": USAGES[what], "model": "another, cheaper one" * 1000}
    httpserver.expect_request(re.compile("/v1/.*")).respond_with_json(body)
    model = OpenAIModel(configured(httpserver.url_for("/v1"), retries=0, price={"input": 1.0, "output": 1.0}))
    answer = await model.complete(ask("Buy the lamp. " * 500))
    await model.close()
    usage = answer.usage
    assert usage.cost is None if what in UNREAD else (usage.cost or 0) >= 2_500 / 1e6
    assert usage.cached_tokens + usage.cache_write_tokens <= usage.input_tokens and len(answer.model) <= 200


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Retry-After", "1e12"),
        ("Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT"),
        ("Retry-After-Ms", "1e300"),
        ("X-RateLimit-Reset-Tokens", "9" * 400 + "h"),
        ("X-RateLimit-Reset-Tokens", "9999-12-31T23:59:59"),
    ],
)
async def test_no_server_asks_to_wait_without_end(
    httpserver: HTTPServer, configured: Configured, ask: Ask, header: str, value: str
) -> None:
    """The call fails at once, and the next one does not wait for its timeout either."""
    limited = Response("{}", 429, {header: value, "X-RateLimit-Remaining-Tokens": "0"})
    httpserver.expect_request(re.compile("/v1/.*")).respond_with_response(limited)
    model = OpenAIModel(configured(httpserver.url_for("/v1"), retries=3, timeout=60))
    async with asyncio.timeout(5):
        for _ in range(2):
            with pytest.raises(ModelError, match=r"the wait of 3\.6e\+03 s before the next try passes its timeout"):
                await model.complete(ask())
    await model.close()


async def test_tokens_that_no_call_can_have_used_do_not_end_the_rate(httpserver: HTTPServer, configured: Configured, ask: Ask) -> None:
    httpserver.expect_request(re.compile("/v1/.*")).respond_with_json(completion() | {"usage": USAGES["large"]})
    provider = Provider(base_url=httpserver.url_for("/v1"), tokens_per_minute=60_000)
    model = OpenAIModel(configured(httpserver.url_for("/v1"), retries=0, timeout=100), provider=provider, sleep=Waits())
    assert [(await model.complete(ask())).choices[0].text for _ in range(2)] == ["Buy it."] * 2
    await model.close()


class Waits:
    """A wait that takes no time, and is bounded."""

    async def __call__(self, seconds: float) -> None:
        assert seconds < 100
