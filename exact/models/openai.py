"""Chat models behind an OpenAI-compatible endpoint: OpenAI itself, vLLM, SGLang, llama.cpp and many others."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import os
import re
import urllib.parse
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import ModelConfig
from exact.errors import ModelError, UsageError
from exact.models import price as prices
from exact.models import wire
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Sampling, Usage
from exact.models.providers import serving
from exact.models.retry import Sleep, Trouble, named_wait, retried

if TYPE_CHECKING:
    import openai

_SECRET = re.compile(r"\b(sk-|Bearer\s+)[\w.*+/=-]{3,}")
_SHORTEST_KEY = 6
_OTHER_LIMIT = "max_completion_tokens"
_RETRIED = frozenset({408, 409, 425, 429})


def sampling(config: ModelConfig) -> Sampling:
    """How a configuration's model is to be sampled; `n` and `seed` are each request's own."""
    return Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens, logprobs=config.logprobs)


class OpenAIModel:
    """A ChatModel over Chat Completions.

    What a server lacks is made up for: where it gives one choice for `n`, the others are asked for in parallel, the i-th with
    `seed + i`; where it wants `max_completion_tokens`, it gets that. Both are remembered. Otherwise nothing asked for is
    dropped. A choice the server did not give is an empty one whose `finish` is `empty`.
    """

    def __init__(self, config: ModelConfig, *, sleep: Sleep = asyncio.sleep) -> None:
        """Raises UsageError for a base URL that is none and for a missing key; loopback needs no key. `sleep` waits between tries."""
        provider = serving(config)
        place = provider.places[0]
        variable = provider.api_key_env if place.api_key_env is None else place.api_key_env
        config = msgspec.structs.replace(config, base_url=place.base_url, api_key_env=variable)
        self._config, self._sleep = config, sleep
        self._url, local = _checked(config.base_url)
        self._key = os.environ.get(config.api_key_env, "")
        if not self._key and variable and not local:
            raise UsageError(f"no key for {config.model} at {self._url}: set the environment variable {config.api_key_env}")
        self._client = _client(config, self._key, local)
        self._one_by_one = False
        self._limit = "max_tokens"

    @property
    def name(self) -> str:
        """`openai/<model>`, or the endpoint's host, without port, in place of `openai`."""
        host = urllib.parse.urlsplit(self._url).hostname
        return f"{'openai' if host == 'api.openai.com' else host}/{self._config.model}"

    @functools.cached_property
    def price(self) -> Price | None:
        return prices.price(self._config)

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer with `sampling.n` choices, within the configured time. Raises ModelError.

        `raw` is the server's JSON, verbatim; where several calls were needed, a JSON array of them.
        """
        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._complete(request, asyncio.get_running_loop().time() + seconds)
        except TimeoutError:
            message = f"{self.name} did not answer within {seconds:g} s: raise the model's timeout, or see what keeps {self._url}"
        raise ModelError(message)

    async def close(self) -> None:
        await self._client.close()

    async def _complete(self, request: ChatRequest, deadline: float) -> ChatAnswer:
        n, answers = request.sampling.n, list[ChatAnswer]()
        if n == 1 or not self._one_by_one:
            try:
                answers = [await self._call(request, n, 0, deadline)]
            except _NotSeveral:
                self._one_by_one = True
            else:
                self._one_by_one |= n > 1 and len(answers[0].choices) == 1
        have = len(answers[0].choices) if answers else 0
        if n > 1 and have < n:
            answers += await _together([self._call(request, 1, index, deadline) for index in range(have, n)])
        return self._merged(answers, n)

    async def _call(self, request: ChatRequest, n: int, index: int, deadline: float) -> ChatAnswer:
        async def attempt() -> ChatAnswer:
            for limit in (self._limit, _OTHER_LIMIT):
                try:
                    return await self._attempt(wire.body(request, self._config.model, n=n, index=index, limit=limit))
                except _OtherLimit:
                    self._limit = _OTHER_LIMIT
            raise AssertionError("the second limit cannot be refused for the first's name")

        return await retried(attempt, retries=self._config.retries, deadline=deadline, sleep=self._sleep)

    async def _attempt(self, body: dict[str, Any]) -> ChatAnswer:
        import openai

        try:
            response = await self._client.chat.completions.with_raw_response.create(**body)
            return wire.answer(response.text)
        except openai.APIStatusError as error:
            trouble = self._refused(error, body)
        except openai.APIConnectionError as error:
            cause = self._scrubbed(str(error.__cause__ or error))
            trouble = Trouble(f"cannot reach {self._url} ({cause})", "is the server running, and is base_url right?", again=True)
        except (wire.MalformedAnswer, openai.APIError, UnicodeError) as error:
            said = self._scrubbed(str(error))
            trouble = Trouble(f"{self._url} answers with no chat completion ({said})", "is base_url an OpenAI-compatible API?", again=True)
        raise trouble

    def _refused(self, error: openai.APIStatusError, body: dict[str, Any]) -> Exception:
        """What an HTTP status means, and the way out."""
        status, said = error.status_code, f"{error.status_code}: {self._scrubbed(_message(error))}"
        if status == 400 and error.param == "n" and "n" in body:
            return _NotSeveral()
        if status == 400 and _OTHER_LIMIT in error.message and "max_tokens" in body:
            return _OtherLimit()
        if status in (401, 403):
            variable = self._config.api_key_env
            return Trouble(f"{self._url} refuses the key ({said})", f"set {variable} to one that may use {self._config.model}", again=False)
        if status == 404:
            return Trouble(f"{self._url} has no {self._config.model} ({said})", "check model and base_url", again=False)
        if status == 429 and error.code == "insufficient_quota":
            return Trouble(f"{self.name} is out of quota ({said})", "add credit, or choose another model", again=False)
        if status == 429:
            wait = named_wait(error.response.headers)
            return Trouble(
                f"{self.name} limits the rate ({said})", "use fewer workers, or raise the model's retries", again=True, after=wait
            )
        if status >= 500 or status in _RETRIED:
            wait = named_wait(error.response.headers)
            return Trouble(f"{self.name} failed ({said})", "try again later, or see the server's log", again=True, after=wait)
        return Trouble(f"{self.name} refuses the request ({said})", "check the model's options in the configuration", again=False)

    def _merged(self, answers: list[ChatAnswer], n: int) -> ChatAnswer:
        choices = [choice for answer in answers for choice in answer.choices][:n]
        choices += [Choice(text="", finish="empty")] * (n - len(choices))
        raw = answers[0].raw if len(answers) == 1 else f"[{','.join(answer.raw for answer in answers)}]"
        return ChatAnswer(choices=tuple(choices), usage=self._usage(answers), model=answers[0].model, raw=raw)

    def _usage(self, answers: list[ChatAnswer]) -> Usage:
        costs = [prices.cost(answer.usage, self._config) for answer in answers]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            input_tokens=sum(answer.usage.input_tokens for answer in answers),
            cached_tokens=sum(answer.usage.cached_tokens for answer in answers),
            output_tokens=sum(answer.usage.output_tokens for answer in answers),
            cost=sum(known) if len(known) == len(costs) else None,
        )

    def _scrubbed(self, text: str) -> str:
        """One line of a message that came from outside, without any key in it."""
        if len(self._key) >= _SHORTEST_KEY:
            text = text.replace(self._key, "***")
        line = " ".join(_SECRET.sub(r"\1***", text).split())
        return line if len(line) <= 240 else line[:237] + "..."


class _NotSeveral(Exception):
    """The server does not take `n`."""


class _OtherLimit(Exception):
    """The server wants the cap on new tokens under its other name."""


async def _together(calls: list[Coroutine[Any, Any, ChatAnswer]]) -> list[ChatAnswer]:
    """All results in order; the first failure ends the others, and so does being cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failures:
        failure = failures.exceptions[0]
    else:
        return [task.result() for task in tasks]
    raise failure


def _message(error: openai.APIStatusError) -> str:
    """The server's own words where it gives any."""
    said = error.body.get("message") if isinstance(error.body, dict) else None
    return said if isinstance(said, str) else error.message


def _checked(base_url: str) -> tuple[str, bool]:
    """A base URL without any credentials in it, and whether it is on loopback. Raises UsageError."""
    try:
        parts = urllib.parse.urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https"):
        raise UsageError(f"base_url {base_url!r} is no URL of a model server: write e.g. http://127.0.0.1:8000/v1")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}", _is_loopback(host)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _client(config: ModelConfig, key: str, local: bool) -> openai.AsyncOpenAI:
    """The SDK's client, its own retries off. A proxy of the surroundings is not used for loopback."""
    import openai

    http = openai.DefaultAsyncHttpxClient(trust_env=False) if local else None
    return openai.AsyncOpenAI(api_key=key or "none", base_url=config.base_url, max_retries=0, timeout=config.timeout, http_client=http)
