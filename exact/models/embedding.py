"""Embeddings of texts by a model at an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models.base import Tariff, Usage
from exact.models.endpoint import ServedModel
from exact.models.load_balancer import LoadBalancer
from exact.models.meter import total
from exact.models.openai import Limiters, rate_limiter
from exact.models.providers import Provider, serving
from exact.models.retry import RequestError, Sleep, retried
from exact.models.wire import Embedded

BATCH = 256
"""Most texts in one request."""


class Vectors(NamedTuple):
    """One vector for each text, in order, with the usage."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


class EmbeddingModel(Protocol):
    """A model that maps texts to vectors of one length, whose cosine is the similarity of the texts."""

    @property
    def name(self) -> str:
        """Provider and model. Vectors of different names are not comparable."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


class OpenAIEmbedding:
    """An EmbeddingModel over the embeddings API, with the retries, rate limits and endpoints of chat models."""

    def __init__(
        self, config: ModelConfig, *, provider: Provider | None = None, limiters: Limiters | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        """Take the arguments of OpenAIModel. Raises UsageError."""
        self._config, self._sleep = config, sleep
        provider = provider or serving(config)
        tariff, limiter = Tariff(config, provider), limiters or (lambda provider, endpoint: rate_limiter(provider))
        self._endpoints = [ServedModel(config, provider, each, tariff, limiter(provider, each)) for each in provider.all_endpoints]
        self._balancer = LoadBalancer(self._endpoints, lambda: asyncio.get_running_loop().time())
        self._provider = provider.name

    @property
    def name(self) -> str:
        """`<provider>/<model>`."""
        return f"{self._provider}/{self._config.model}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return a vector for each text, within the configured time. Raises ModelError."""
        seconds, found = self._config.timeout, list[Embedded]()
        try:
            async with asyncio.timeout(seconds):
                deadline = asyncio.get_running_loop().time() + seconds
                for start in range(0, len(texts), BATCH):
                    found.append(await self._batch(list(texts[start : start + BATCH]), deadline))
        except TimeoutError:
            raise ModelError(f"{self.name} gave no vectors within {seconds:g} s: raise the model's timeout, or see its server") from None
        return Vectors(tuple(vector for batch in found for vector in batch.vectors), total(batch.usage for batch in found))

    async def close(self) -> None:
        """Close all connections."""
        for endpoint in self._endpoints:
            await endpoint.close()

    async def _batch(self, texts: list[str], deadline: float) -> Embedded:
        async def attempt() -> Embedded:
            endpoint = await self._balancer.choose()
            try:
                answer = await endpoint.embed(texts)
            except RequestError as error:
                if error.elsewhere and len(self._endpoints) > 1:
                    self._balancer.failed(endpoint, permanent=not error.retry, after=error.after)
                    error.retry = error.retry or self._balancer.others([endpoint]) or self._balancer.recovers([endpoint])
                raise
            if len(answer.vectors) != len(texts):
                raise RequestError(
                    f"{endpoint.url} gave {len(answer.vectors)} vectors for {len(texts)} texts", "see the server's log", retry=True
                )
            self._balancer.succeeded(endpoint)
            return answer

        return await retried(attempt, retries=self._config.retries + len(self._endpoints) - 1, deadline=deadline, sleep=self._sleep)
