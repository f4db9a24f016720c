"""Chat models behind OpenAI-compatible endpoints: OpenAI itself, Azure, vLLM, SGLang, Ollama, and what others offer in that form."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Sampling
from exact.models.endpoint import NotSeveral, ServedModel
from exact.models.meter import total
from exact.models.pace import Pace
from exact.models.price import Tariff
from exact.models.providers import DEFAULT, OTHER, Endpoint, Provider, serving
from exact.models.retry import Sleep, Trouble, retried
from exact.models.route import Route
from exact.models.together import together

Paces = Callable[[Provider, Endpoint], Pace]
"""The pace of an endpoint: models that share the endpoint share it."""


def sampling(config: ModelConfig) -> Sampling:
    """How a configuration's model is to be sampled; `n` and `seed` are each request's own."""
    return Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_tokens, logprobs=config.logprobs)


class OpenAIModel:
    """A ChatModel over Chat Completions, at one endpoint or several.

    What a server lacks is made up for: where it gives one choice for `n`, the others are asked for in parallel, the i-th with
    `seed + i`; what it does not take is left out, told in the answer's `notes`, and remembered. A choice the server did not give
    is an empty one whose `finish` is `empty`.
    """

    def __init__(
        self, config: ModelConfig, *, provider: Provider | None = None, paces: Paces | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        """`provider`: the one that the configuration names unless given. `sleep` waits between tries.

        Raises UsageError for a base URL that is none and for a missing key; loopback needs no key.
        """
        self._config, self._sleep = config, sleep
        self._provider = provider = provider or serving(config)
        self._tariff = Tariff(config, provider)
        made = paces or (lambda provider, place: pace(provider, sleep))
        self._places = [ServedModel(config, provider, place, self._tariff, made(provider, place)) for place in provider.places]
        self._route = Route(self._places, _now)

    @property
    def name(self) -> str:
        """`<provider>/<model>`; for an address of no provider's, its host without port in place of the provider."""
        host = self._places[0].url.partition("://")[2].partition("/")[0].rpartition(":")
        address = host[0] if host[0] and host[2].isdigit() else "".join(host)
        known = self._provider.name if self._provider.name not in ("", OTHER, DEFAULT) else ""
        return f"{known or ('openai' if address == 'api.openai.com' else address)}/{self._config.model}"

    @property
    def price(self) -> Price | None:
        return self._tariff.price

    @property
    def endpoints(self) -> tuple[ServedModel, ...]:
        """Where it is served."""
        return tuple(self._places)

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer with `sampling.n` choices, within the configured time. Raises ModelError.

        `raw` is the server's JSON, verbatim; where several calls were needed, a JSON array of them.
        """
        return await self._within(self._complete, request)

    async def close(self) -> None:
        for place in self._places:
            await place.close()

    async def _within(self, work: Callable[[ChatRequest, float], Coroutine[Any, Any, ChatAnswer]], request: ChatRequest) -> ChatAnswer:
        seconds = self._config.timeout
        try:
            async with asyncio.timeout(seconds):
                return await work(request, _now() + seconds)
        except TimeoutError:
            where = ", ".join(place.url for place in self._places)
            message = f"{self.name} did not answer within {seconds:g} s: raise the model's timeout, or see what keeps {where}"
        raise ModelError(message)

    async def _complete(self, request: ChatRequest, deadline: float) -> ChatAnswer:
        n, answers = request.sampling.n, list[ChatAnswer]()
        if n == 1 or any(place.takes.n is not False for place in self._places):
            answers = [await self._call(request, n, 0, deadline)]
        have = sum(len(answer.choices) for answer in answers)
        if n > 1 and have < n:
            answers += await together([self._call(request, 1, index, deadline) for index in range(have, n)])
        return _merged(answers, n)

    async def _call(self, request: ChatRequest, n: int, index: int, deadline: float) -> ChatAnswer:
        """The answer of whichever endpoint gives one first, one after the other; one choice of `n` where it takes no `n`."""
        avoid: dict[ServedModel, bool] = {}

        async def attempt() -> ChatAnswer:
            place = await self._route.choose(avoid)
            try:
                answer = await self._asked(place, request, n, index)
            except Trouble as trouble:
                self._failed(place, trouble, avoid)
                raise
            self._route.succeeded(place)
            return answer

        tries = self._config.retries + len(self._places) - 1
        return await retried(attempt, retries=tries, deadline=deadline, sleep=self._sleep)

    async def _asked(self, place: ServedModel, request: ChatRequest, n: int, index: int) -> ChatAnswer:
        if n > 1 and place.takes.n is not False:
            try:
                answer = await place.ask(request, n=n, index=index)
            except NotSeveral:
                pass
            else:
                if len(answer.choices) == 1:
                    place.takes = msgspec.structs.replace(place.takes, n=False)
                return answer
        return await place.ask(request, n=1, index=index)

    def _failed(self, place: ServedModel, trouble: Trouble, avoid: dict[ServedModel, bool]) -> None:
        """Where another endpoint may do better, it is tried at once. `avoid`: of each that failed, whether that may pass."""
        if not trouble.elsewhere or len(self._places) == 1:
            return
        self._route.failed(place, for_good=not trouble.again, after=trouble.after)
        avoid[place] = trouble.again
        if self._route.others(avoid):
            trouble.again, trouble.after = True, 0.0
        elif len(avoid) == len(self._places):
            trouble.again = any(avoid.values())
            avoid.clear()
        else:
            trouble.again = trouble.again or self._route.mends(avoid)


def pace(provider: Provider, sleep: Sleep = asyncio.sleep, *, share: float = 1.0) -> Pace:
    """A pace as a provider allows it. `share`: how much of that, in (0, 1]; one request at a time is always let."""

    def part(most: float | None) -> float | None:
        return None if most is None else most * share

    return Pace(
        concurrency=max(1, int(provider.concurrency * share)),
        requests_per_minute=part(provider.requests_per_minute),
        tokens_per_minute=part(provider.tokens_per_minute),
        sleep=sleep,
    )


def _merged(answers: list[ChatAnswer], n: int) -> ChatAnswer:
    choices = [choice for answer in answers for choice in answer.choices][:n]
    choices += [Choice(text="", finish="empty")] * (n - len(choices))
    raw = answers[0].raw if len(answers) == 1 else f"[{','.join(answer.raw for answer in answers)}]"
    notes = tuple(dict.fromkeys(note for answer in answers for note in answer.notes))
    usage = total(answer.usage for answer in answers)
    return ChatAnswer(choices=tuple(choices), usage=usage, model=answers[0].model, raw=raw, notes=notes)


def _now() -> float:
    return asyncio.get_running_loop().time()
