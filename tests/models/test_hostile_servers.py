"""Servers that answer with what no model server sends: each is an error of its own kind, within bounds, and gets no key that is not its."""

import gzip
import json
import re
from collections.abc import Callable

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models import bounded
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
    monkeypatch.setattr(bounded, "MOST_BYTES", 1000)
    body = gzip.compress(b" " * 5_000_000) if encoding else b" " * 5_000_000
    with pytest.raises(ModelError, match=r"more than 1,000 bytes|compressed in a way that was not asked for"):
        await answered(httpserver, configured, ask(), Response(body, status, {"Content-Encoding": encoding} if encoding else {}))


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
