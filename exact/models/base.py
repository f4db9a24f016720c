"""The contract with chat models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Part of a message: words."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """Part of a message: a picture."""

    data: bytes
    media_type: str = "image/png"


class Message(msgspec.Struct, frozen=True):
    """One turn."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Text | Image, ...]


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are drawn."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int | None = None
    logprobs: bool = False


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model. Role, node, draw and attempt say where it belongs; they are journalled, not sent."""

    messages: tuple[Message, ...]
    sampling: Sampling
    role: str
    """`policy`, `value`, `reflection`, or a part of one: `value.judge`."""
    node: int = 0
    prompt: str = ""
    """Name, version and hash of the prompt: `policy@1:3fa9c1`."""
    attempt: int = 0
    """0, or how often the parse error was sent back before."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of an object that the answer is to be. A server that takes none is not told: the answer is parsed anyway."""
    left_out: tuple[str, ...] = ()
    """What of the state is not in the messages for want of room, one note each; journalled, not sent."""
    draw: int = 0
    """How many such questions were asked in this node before; below 0 where the answer must be independent of theirs."""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled answer."""

    text: str
    finish: str = ""
    token_ids: tuple[int, ...] | None = None
    """Where the server gives them."""
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, one a token, where the server gives them."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a call took."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    """US dollars; None where the price is unknown."""


class ChatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer."""

    choices: tuple[Choice, ...]
    usage: Usage
    model: str
    """As the server names it."""
    raw: str
    """The server's answer, verbatim JSON."""
    replayed: int = 0
    """How many of the choices come from the cache. They took nothing: `usage` is that of the others."""
    notes: tuple[str, ...] = ()
    """What was asked for and left out, because the server does not take it."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None


class ChatModel(Protocol):
    """Answers questions. Any number of calls may be in flight."""

    @property
    def name(self) -> str:
        """Provider and model: `openai/gpt-4o`."""
        ...

    @property
    def price(self) -> Price | None:
        """None where it is unknown: then a money cap cannot be kept."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """The answer, with `sampling.n` choices. Raises ModelError."""
        ...

    async def close(self) -> None: ...
