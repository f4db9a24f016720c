"""A chat model whose every answer is journalled before it is used, and never asked for twice."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Protocol

import msgspec

from exact.budget import Budget
from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Image, Price, Text
from exact.runs import events as ev
from exact.runs.store import Blobs


class Record(Protocol):
    """Journals an event and takes it into the attempt's state."""

    def __call__(self, event: ev.AnyEvent) -> None: ...


class Ledger:
    """Wraps a model for one attempt."""

    def __init__(
        self, model: ChatModel, calls: dict[str, ev.Called], budget: Budget, blobs: Blobs, record: Record, now: Callable[[], float]
    ) -> None:
        self._model, self._calls, self._budget, self._blobs, self._record = model, calls, budget, blobs, record
        self._now = now

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def price(self) -> Price | None:
        return self._model.price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The journalled answer if there is one, else the model's. Raises ModelError, BudgetExceeded."""
        content = self._plain(request)
        key = hashlib.sha256(
            msgspec.json.encode((self.name, request.role, request.node, request.attempt, request.sampling, content))
        ).hexdigest()
        if known := self._calls.get(key):
            return msgspec.json.decode(self._blobs.get(known.answer), type=ChatAnswer)
        began = self._now()
        worst = self._worst_cost(request)
        with self._budget.reserve({"calls": 1, "money": worst}):
            answer = await self._model.complete(request)
        self._record(
            ev.Called(
                key=key,
                role=request.role,
                node=request.node,
                attempt=request.attempt,
                prompt=request.prompt,
                model=answer.model,
                sampling=request.sampling,
                request=self._blobs.put(msgspec.json.encode(content)),
                answer=self._blobs.put(msgspec.json.encode(answer)),
                usage=answer.usage,
                reserved=worst,
                seconds=round(self._now() - began, 6),
            )
        )
        return answer

    async def close(self) -> None:
        """The model is the run's; it stays open."""

    def _plain(self, request: ChatRequest) -> list[object]:
        """The messages with each image replaced by its blob's name."""
        return [
            {"role": m.role, "parts": [{"text": p.text} if isinstance(p, Text) else {"image": self._blobs.put(p.data)} for p in m.parts]}
            for m in request.messages
        ]

    def _worst_cost(self, request: ChatRequest) -> float:
        """US dollars at most: a token for every two characters, 2,000 for an image, answers of full length, each asked for on its own."""
        if self.price is None:
            return 0.0
        parts = [part for message in request.messages for part in message.parts]
        tokens = sum(2000 if isinstance(part, Image) else len(part.text) / 2 + 8 for part in parts)
        return request.sampling.n * (tokens * self.price.input + request.sampling.max_tokens * self.price.output) / 1e6
