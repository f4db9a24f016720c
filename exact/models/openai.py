"""Chat models at OpenAI-compatible endpoints: OpenAI, Azure, vLLM, SGLang, Ollama and other servers of Chat Completions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Sampling, Tariff
from exact.models.endpoint import ServedModel
from exact.models.load_balancer import LoadBalancer
from exact.models.meter import total
from exact.models.providers import DEFAULT, OTHER, Endpoint, Provider, serving
from exact.models.rate_limiter import RateLimiter
from exact.models.retry import RequestError, Sleep, retried, together

if TYPE_CHECKING:
    from exact.models.rate_limiter import SharedRates

Limiters = Callable[[Provider, Endpoint], RateLimiter]
"""The rate limiter of an endpoint. Models that share the endpoint share it."""


def sampling(config: ModelConfig) -> Sampling:
    """Return the sampling settings of a configuration; `n` and `seed` are set for each request."""
    return Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens, logprobs=config.logprobs)


class OpenAIModel:
    """A ChatModel over Chat Completions, at one endpoint or several.

    Features that a server lacks are compensated for. If it gives one choice for `n`, the others are requested in parallel, the i-th with
    `seed + i`. A part that it refuses is left out from then on, and named in the answer's `notes`. A choice that the server did not give is
    an empty one whose `finish` is `empty`.
    """

    def __init__(
        self, config: ModelConfig, *, provider: Provider | None = None, limiters: Limiters | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        """Open no connection yet. `provider` is the one that the configuration names unless given; `sleep` waits between tries.

        Raises UsageError if the base URL is invalid or the key is missing. An endpoint on loopback needs no key.
        """
        self._config, self._sleep = config, sleep
        self._provider = provider = provider or serving(config)
        self._tariff = Tariff(config, provider)
        limiter = limiters or (lambda provider, endpoint: rate_limiter(provider, sleep))
        self._endpoints = [ServedModel(config, provider, each, self._tariff, limiter(provider, each)) for each in provider.all_endpoints]
        self._balancer = LoadBalancer(self._endpoints, _now)

    @property
    def name(self) -> str:
        """`<provider>/<model>`. The host without port takes the provider's place if the address belongs to no provider."""
        host = self._endpoints[0].url.partition("://")[2].partition("/")[0].rpartition(":")
        address = host[0] if host[0] and host[2].isdigit() else "".join(host)
        known = self._provider.name if self._provider.name not in ("", OTHER, DEFAULT) else ""
        return f"{known or ('openai' if address == 'api.openai.com' else address)}/{self._config.model}"

    @property
    def price(self) -> Price | None:
        """US dollars for a million tokens; None if it is unknown."""
        return self._tariff.price

    @property
    def reasons(self) -> bool:
        """Whether it reasons before it answers, as far as is known."""
        return any(endpoint.takes.reasons for endpoint in self._endpoints)

    @property
    def endpoints(self) -> tuple[ServedModel, ...]:
        """Endpoints that serve the model."""
        return tuple(self._endpoints)

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices, within the configured time. Raises ModelError.

        `raw` is the server's JSON, verbatim; if several requests were needed, a JSON array of their answers.
        """
        return await self._within(self._complete, request)

    async def close(self) -> None:
        """Close all connections."""
        for endpoint in self._endpoints:
            await endpoint.close()

    async def _within(self, work: Callable[[ChatRequest, float], Coroutine[Any, Any, ChatAnswer]], request: ChatRequest) -> ChatAnswer:
        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                return await work(request, _now() + seconds)
        except TimeoutError:
            where = ", ".join(endpoint.url for endpoint in self._endpoints)
            message = f"{self.name} did not answer within {seconds:g} s: raise the model's timeout, or see what keeps {where}"
        raise ModelError(message)

    async def _complete(self, request: ChatRequest, deadline: float) -> ChatAnswer:
        n, answers = request.sampling.n, list[ChatAnswer]()
        if n == 1 or any(endpoint.takes.n is not False or endpoint.warms(request) for endpoint in self._endpoints):
            answers = [await self._call(request, n, 0, deadline)]
        have = sum(len(answer.choices) for answer in answers)
        if n > 1 and have < n:
            answers += await together([self._call(request, 1, index, deadline) for index in range(have, n)])
        return _merged(answers, n)

    async def _call(self, request: ChatRequest, n: int, index: int, deadline: float) -> ChatAnswer:
        """Return the first answer of an endpoint, one asked after the other. It has one choice if the server refuses `n`."""
        avoid: dict[ServedModel, bool] = {}

        async def attempt() -> ChatAnswer:
            endpoint = await self._balancer.choose(avoid)
            try:
                answer = await self._asked(endpoint, request, n, index)
            except RequestError as error:
                self._failed(endpoint, error, avoid)
                raise
            self._balancer.succeeded(endpoint)
            return answer

        tries = self._config.retries + len(self._endpoints) - 1
        return await retried(attempt, retries=tries, deadline=deadline, sleep=self._sleep)

    async def _asked(self, endpoint: ServedModel, request: ChatRequest, n: int, index: int) -> ChatAnswer:
        several = n > 1 and endpoint.takes.n is not False
        answer = await endpoint.ask(request, n=n, index=index)
        if several and len(answer.choices) == 1:
            endpoint.takes = msgspec.structs.replace(endpoint.takes, n=False)
        return answer

    def _failed(self, endpoint: ServedModel, error: RequestError, avoid: dict[ServedModel, bool]) -> None:
        """Record a failure, and retry at once if another endpoint may do better.

        `avoid` holds the endpoints that failed, and whether their failure may pass.
        """
        if not error.elsewhere or len(self._endpoints) == 1:
            return
        self._balancer.failed(endpoint, permanent=not error.retry, after=error.after)
        avoid[endpoint] = error.retry
        if self._balancer.others(avoid):
            error.retry, error.after = True, 0.0
        elif len(avoid) == len(self._endpoints):
            error.retry = any(avoid.values())
            avoid.clear()
        else:
            error.retry = error.retry or self._balancer.recovers(avoid)


def rate_limiter(
    provider: Provider, sleep: Sleep = asyncio.sleep, *, share: float = 1.0, shared: SharedRates | None = None, name: str = ""
) -> RateLimiter:
    """Return a rate limiter with a provider's limits times `share`, in (0, 1]. One request at a time is always allowed.

    Rates that all processes count by `shared`, under the endpoint's `name`, are not divided.
    """

    def part(most: float | None) -> float | None:
        return None if most is None else most * (1.0 if shared else share)

    return RateLimiter(
        concurrency=max(1, int(provider.concurrency * share)),
        requests_per_minute=part(provider.requests_per_minute),
        tokens_per_minute=part(provider.tokens_per_minute),
        sleep=sleep,
        shared=shared,
        name=name,
    )


def _merged(answers: list[ChatAnswer], n: int) -> ChatAnswer:
    choices = [choice for answer in answers for choice in answer.choices][:n]
    choices += [Choice(text="", finish="empty")] * (n - len(choices))
    raw = answers[0].raw if len(answers) == 1 else f"[{','.join(answer.raw for answer in answers)}]"
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    usage = total(answer.usage for answer in answers)
    is_json = any(answer.structured for answer in answers)
    return ChatAnswer(choices=tuple(choices), usage=usage, model=answers[0].model, raw=raw, notes=notes, structured=is_json)


def _now() -> float:
    return asyncio.get_running_loop().time()
