"""A chat model whose answers are journalled before they are used, and never asked for twice."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from exact.models.base import ChatAnswer, ChatModel, ChatRequest, Image, Message, Price, Text
from exact.models.meter import metered, total
from exact.runs.journal import events as ev
from exact.runs.journal.spending import Spending
from exact.runs.journal.store import Blobs


class RecordEvent(Protocol):
    """A function that journals an event and applies it to the attempt's state."""

    def __call__(self, event: ev.AnyEvent) -> None: ...


class JournalledModel:
    """A wrapper of a chat model for one attempt."""

    def __init__(self, model: ChatModel, spending: Spending, blobs: Blobs, record: RecordEvent, now: Callable[[], float]) -> None:
        self._model, self._spending, self._blobs, self._record, self._now = model, spending, blobs, record, now
        self._asking: dict[str, asyncio.Future[None]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def price(self) -> Price | None:
        return self._model.price

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return the journalled answer to a request, else the model's. Raises ModelError, BudgetExceeded."""
        content = self._plain(request)
        key = self._key(request, content)
        while key in self._asking:
            await asyncio.wait([self._asking[key]])
        if known := self._spending.calls.get(key):
            return self._blobs.read(known.answer, ChatAnswer)
        self._asking[key] = asyncio.get_running_loop().create_future()
        try:
            return await self._ask(request, content, key)
        finally:
            self._asking.pop(key).set_result(None)

    async def _ask(self, request: ChatRequest, content: list[object], key: str) -> ChatAnswer:
        began = self._now()
        tokens, money = self._worst_case(request)
        with self._spending.scope(request.selection).reserve({"calls": 1, "tokens": tokens, "money": money}):
            answer = await self._metered(request)
        self._record(
            ev.Called(
                key=key,
                role=request.role,
                node=request.node,
                attempt=request.attempt,
                draw=request.draw,
                prompt=request.prompt,
                model=answer.model,
                sampling=request.sampling,
                request=self._blobs.put(msgspec.json.encode(content)),
                form=_form(request, answer),
                answer=self._blobs.put(msgspec.json.encode(answer)),
                usage=answer.usage,
                reserved=money,
                reserved_tokens=tokens,
                replayed=answer.replayed,
                left_out=request.left_out,
                notes=answer.notes,
                seconds=round(self._now() - began, 6),
                selection=request.selection,
            )
        )
        return answer

    async def _metered(self, request: ChatRequest) -> ChatAnswer:
        """Ask the model. Requests that the usage of its answer does not cover are journalled, also where it gives no answer."""
        answered = False
        with metered() as exchanges:
            try:
                answer = await self._model.complete(request)
                answered = True
            finally:
                lost = tuple(f"{e.endpoint}: {e.reason}" for e in exchanges if e.outcome == "lost")
                came = [] if answered else [e.usage for e in exchanges if e.outcome == "answered"]
                if lost or came:
                    self._record(
                        ev.Unaccounted(
                            role=request.role, node=request.node, model=self.name, lost=lost, usage=total(came), selection=request.selection
                        )
                    )
        return answer

    def _key(self, request: ChatRequest, content: list[object]) -> str:
        about = [self.name, request.role, request.node, request.draw, request.attempt, request.sampling, request.schema, content]
        about += [] if request.screen is None else [request.screen]
        return hashlib.sha256(msgspec.json.encode(about)).hexdigest()

    async def close(self) -> None:
        """Leave the model open: it belongs to the run."""

    def _plain(self, request: ChatRequest) -> list[object]:
        """Return the messages with each image replaced by the name of its blob. Native items of a turn are part of it, if there are any."""
        return [self._turn(message) for message in request.messages]

    def _turn(self, message: Message) -> dict[str, object]:
        parts = [{"text": part.text} if isinstance(part, Text) else {"image": self._blobs.put(part.data)} for part in message.parts]
        return {"role": message.role, "parts": parts} | ({"items": message.items} if message.items else {})

    def _worst_case(self, request: ChatRequest) -> tuple[int, float]:
        """Return the most tokens and US dollars that a request may take.

        One token for every two characters, 2,000 for an image or the computer tool, and answers of full length, each with the prompt
        again.
        """
        parts = [part for message in request.messages for part in message.parts]
        read = sum(2000 if isinstance(part, Image) else len(part.text) / 2 + 8 for part in parts)
        if request.form is not None:
            read += (len(request.form.example) + len(msgspec.json.encode(request.form.schema))) / 2
        read += sum(len(msgspec.json.encode(message.items)) / 2 for message in request.messages if message.items)
        read += 2000 if request.screen is not None else 0
        n, written = request.sampling.n, request.sampling.max_tokens
        price = self.price
        money = n * (read * price.highest_input + written * price.output) / 1e6 if price is not None else 0.0
        return int(n * (read + written)), money


def _form(request: ChatRequest, answer: ChatAnswer) -> dict[str, Any] | None:
    """Return the schema that an answer was asked for with: the request's own, or that of its form where it was sent."""
    schema = request.form.schema if request.form is not None and answer.structured else request.schema
    return None if schema is None else dict(schema)
