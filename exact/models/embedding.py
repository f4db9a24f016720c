"""Texts as vectors by a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from exact.config import ModelConfig
from exact.errors import ModelError
from exact.models.base import Usage
from exact.models.endpoint import ServedModel
from exact.models.meter import total
from exact.models.openai import Paces, pace
from exact.models.price import Tariff
from exact.models.providers import Provider, serving
from exact.models.retry import Sleep, Trouble, retried
from exact.models.route import Route
from exact.models.wire import Embedded

BATCH = 256
"""Texts sent in one request."""


class Vectors(NamedTuple):
    """One vector a text, in order, and what they took."""

    vectors: tuple[tuple[float, ...], ...]
    usage: Usage


class EmbeddingModel(Protocol):
    """Maps texts to vectors of one length whose cosine is their likeness."""

    @property
    def name(self) -> str:
        """Provider and model: vectors of different names are not comparable."""
        ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text. Raises ModelError."""
        ...

    async def close(self) -> None: ...


class OpenAIEmbedding:
    """An EmbeddingModel over the embeddings API, with the retries, pace and endpoints of chat models."""

    def __init__(
        self, config: ModelConfig, *, provider: Provider | None = None, paces: Paces | None = None, sleep: Sleep = asyncio.sleep
    ) -> None:
        """As for OpenAIModel. Raises UsageError."""
        self._config, self._sleep = config, sleep
        provider = provider or serving(config)
        tariff, made = Tariff(config, provider), paces or (lambda provider, place: pace(provider))
        self._places = [ServedModel(config, provider, place, tariff, made(provider, place)) for place in provider.places]
        self._route = Route(self._places, lambda: asyncio.get_running_loop().time())
        self._provider = provider.name

    @property
    def name(self) -> str:
        return f"{self._provider}/{self._config.model}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text, within the configured time. Raises ModelError."""
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
        for place in self._places:
            await place.close()

    async def _batch(self, texts: list[str], deadline: float) -> Embedded:
        async def attempt() -> Embedded:
            place = await self._route.choose()
            try:
                answer = await place.embed(texts)
            except Trouble as trouble:
                if trouble.elsewhere and len(self._places) > 1:
                    self._route.failed(place, for_good=not trouble.again, after=trouble.after)
                    trouble.again = trouble.again or self._route.others([place]) or self._route.mends([place])
                raise
            if len(answer.vectors) != len(texts):
                raise Trouble(f"{place.url} gave {len(answer.vectors)} vectors for {len(texts)} texts", "see the server's log", again=True)
            self._route.succeeded(place)
            return answer

        return await retried(attempt, retries=self._config.retries + len(self._places) - 1, deadline=deadline, sleep=self._sleep)
