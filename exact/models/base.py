"""Contract with chat models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Part of a message: text."""

    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """Part of a message: a picture."""

    data: bytes
    media_type: str = "image/png"


class Message(msgspec.Struct, frozen=True):
    """One turn."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Text | Image, ...]
    items: tuple[dict[str, Any], ...] = ()
    """Native items of a model's turn (reasoning, tool calls), as `Choice.items` has them. An API that knows them is sent them in place of
    the parts."""


class Sampling(msgspec.Struct, frozen=True, kw_only=True):
    """Sampling settings of an answer."""

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    seed: int | None = None
    logprobs: bool = False
    top_logprobs: int | msgspec.UnsetType = msgspec.UNSET
    """Number of likeliest tokens to list at each position, with their log-probabilities; it needs `logprobs`. Unset: none."""


class Display(msgspec.Struct, frozen=True, kw_only=True):
    """Display that a model's own computer tool acts on."""

    width: int
    """Pixels of the picture that the model sees."""
    height: int
    kind: Literal["browser", "linux"] = "browser"
    """Kind of computer."""


class AnswerForm(msgspec.Struct, frozen=True, kw_only=True):
    """Form of an answer as JSON, equal in meaning to the lines that the prompt asks for."""

    schema: Mapping[str, Any]
    """JSON Schema of an object."""
    example: str
    """Example in one line, which shows the model the properties."""


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One question to a model. Role, node, draw and attempt identify it in the journal and are not sent."""

    messages: tuple[Message, ...]
    sampling: Sampling
    role: str
    """`policy`, `value`, `reflection`, or a part of one: `value.judge`."""
    node: int = 0
    prompt: str = ""
    """Name, version and hash of the prompt: `policy@1:3fa9c1`."""
    attempt: int = 0
    """Number of times that a parse error was sent back before."""
    schema: Mapping[str, Any] | None = None
    """JSON Schema of the answer. It is not sent to a server that does not support schemas; the answer is parsed in any case."""
    form: AnswerForm | None = None
    """Form in which the answer may come as JSON. It is sent where `models.<role>.structured` says so; the answer is parsed in any case. It
    follows from the prompt, so that recorded answers are found without it."""
    grammar: str = ""
    """Grammar of the answer in GBNF. It is not sent to a server that does not take grammars; the answer is parsed in any case. Empty: any
    text."""
    left_out: tuple[str, ...] = ()
    """Notes on parts of the state that did not fit into the messages; journalled, not sent."""
    draw: int = 0
    """Number of earlier questions of this kind at the node. Below 0: the answer has to be independent of theirs."""
    screen: Display | None = None
    """Display of the model's own computer tool: the last picture. None: the tool is not offered."""


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool."""

    name: str
    """Name of the tool. `computer` is the provider's own."""
    arguments: dict[str, Any]
    """Arguments as the model gave them, in the provider's terms."""

    def __str__(self) -> str:
        return f"{self.name} {msgspec.json.encode(self.arguments).decode()}"


class TokenChance(NamedTuple):
    """A token that could stand at a position, and its log-probability."""

    text: str
    logprob: float


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One sampled answer."""

    text: str
    finish: str = ""
    token_ids: tuple[int, ...] | None = None
    """Token ids, where the server gives them."""
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, one a token, where the server gives them."""
    ends: tuple[int, ...] | None = None
    """Position in `text` at which each token ends, where the tokens' texts make up the answer's. Tokens outside `text` are empty."""
    top_logprobs: tuple[tuple[TokenChance, ...], ...] | None = None
    """Likeliest tokens at each position, likeliest first, where they were requested and the server gives them."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of tools, in order."""
    items: tuple[dict[str, Any], ...] = ()
    """The answer as native items, verbatim, where it has reasoning or calls of tools. They go back to the model with the next question."""

    @property
    def shown(self) -> str:
        """The text, and the calls of tools below it."""
        return "\n".join(filter(None, (self.text, *map(str, self.calls))))


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Number of tokens. What is read from a journal is checked."""
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of a call."""

    input_tokens: Count = 0
    """Tokens of the prompt, cached ones among them."""
    cached_tokens: Count = 0
    """Input tokens that the server read from its cache."""
    cache_write_tokens: Count = 0
    """Input tokens that the server wrote into its cache, at a price of their own."""
    output_tokens: Count = 0
    """Tokens of the answer, reasoning among them."""
    reasoning_tokens: Count = 0
    """Output tokens of reasoning, where the server tells."""
    cost: Dollars | None = None
    """US dollars; None where the price is unknown."""


class ChatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer."""

    choices: tuple[Choice, ...]
    usage: Usage
    model: str
    """Model name that the server gives."""
    raw: str
    """The server's answer, verbatim JSON."""
    replayed: int = 0
    """Number of choices from the cache. `usage` is that of the others."""
    structured: bool = False
    """Whether the request's `form` was sent."""
    notes: tuple[str, ...] = ()
    """Features that were requested and left out, because the server does not support them."""


class Price(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: float
    output: float
    cached: float | None = None
    """Input that is read from the cache. None: that of other input."""
    cache_write: float | None = None
    """Input that is written into the cache. None: that of other input."""

    @property
    def highest_input(self) -> float:
        """Price of the most expensive input, which a cap on money has to reckon with."""
        return max(self.input, self.cache_write or 0.0)


class ChatModel(Protocol):
    """A model that answers questions. Any number of calls may be in flight."""

    @property
    def name(self) -> str:
        """Provider and model: `openai/gpt-4o`."""
        ...

    @property
    def price(self) -> Price | None:
        """Price; None where it is unknown, so that a cap on money cannot be enforced."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
