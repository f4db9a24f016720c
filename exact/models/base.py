"""Contract with chat models.

Cost of model calls. An unknown price is None, never 0.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from exact.config import ModelConfig
from exact.models.providers import Provider, serving
from exact.text import without_special_tokens


class Text(msgspec.Struct, frozen=True, tag="text"):
    """Part of a message: text. It holds no special token, with which a page could end its turn and begin one of its own."""

    text: str

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "text", without_special_tokens(self.text))


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
    """Form in which the answer may come as JSON. It is sent if `models.<role>.structured` says so; the answer is parsed in any case. It
    follows from the prompt, so that recorded answers are found without it."""
    grammar: str = ""
    """Grammar of the answer in GBNF. It is not sent to a server that does not take grammars; the answer is parsed in any case. Empty: any
    text."""
    left_out: tuple[str, ...] = ()
    """Notes on parts of the state that did not fit into the messages; journalled, not sent."""
    draw: int = 0
    """Number of earlier questions of this kind at the node. Below 0: the answer has to be independent of theirs."""
    selection: int = -1
    """The context's selection, whose budget the call is counted in; not sent. -1 for the task's own budget."""
    screen: Display | None = None
    """Display of the model's own computer tool: the last picture. None: the tool is not offered."""

    def sent(self) -> tuple[Message, ...]:
        """Return the messages as a server gets them: with each picture once. The display of a computer tool stays a picture."""
        return pictures_once(self.messages, display=self.screen is not None)


def pictures_once(messages: tuple[Message, ...], *, display: bool = False) -> tuple[Message, ...]:
    """Return messages in which a line stands for each picture that an earlier one equals byte for byte, so that it is not paid for again.

    The line names both by their numbers. With `display` the last picture stays.
    """
    pictures = [part for message in messages for part in message.parts if isinstance(part, Image)]
    if len(set(pictures)) == len(pictures):
        return messages
    numbers, kept = itertools.count(1), len(pictures) if display else 0

    def once(part: Text | Image) -> Text | Image:
        if not isinstance(part, Image):
            return part
        number, first = next(numbers), pictures.index(part) + 1
        return part if number in (first, kept) else Text(f"[Picture {number} is the same as picture {first}.]")

    return tuple(msgspec.structs.replace(each, parts=tuple(map(once, each.parts))) for each in messages)


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
    """Token ids, if the server gives them."""
    logprobs: tuple[float, ...] | None = None
    """Natural logarithms, one for each token, if the server gives them."""
    ends: tuple[int, ...] | None = None
    """Position in `text` at which each token ends, if the texts of the tokens make up the answer. Tokens outside `text` are empty."""
    top_logprobs: tuple[tuple[TokenChance, ...], ...] | None = None
    """Likeliest tokens at each position, likeliest first, if they were requested and the server gives them."""
    calls: tuple[ToolCall, ...] = ()
    """Calls of tools, in order."""
    items: tuple[dict[str, Any], ...] = ()
    """The answer as native items, verbatim, if it has reasoning or tool calls. They go back to the model with the next question."""

    @property
    def shown(self) -> str:
        """The text, and the calls of tools below it."""
        return "\n".join(filter(None, (self.text, *map(str, self.calls))))


Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
"""Number of tokens. A number from a journal is checked."""
Dollars = Annotated[float, msgspec.Meta(ge=0, le=1e12)]


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and cost of a call."""

    input_tokens: Count = 0
    """Tokens of the prompt, cached ones among them."""
    cached_tokens: Count = 0
    """Input tokens that the server read from its cache."""
    cache_write_tokens: Count = 0
    """Input tokens that the server wrote into its cache, which have a separate price."""
    output_tokens: Count = 0
    """Tokens of the answer, reasoning among them."""
    reasoning_tokens: Count = 0
    """Output tokens of reasoning, if the server reports them."""
    cost: Dollars | None = None
    """US dollars; None if the price is unknown."""


class ChatAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's answer."""

    choices: tuple[Choice, ...]
    usage: Usage
    model: str
    """Model name that the server gives."""
    raw: str
    """The server's answer, verbatim JSON. That of a stream is put together."""
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
        """Price; None if it is unknown, so that a cap on money cannot be enforced."""
        ...

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Return an answer with `sampling.n` choices. Raises ModelError."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...


def reasons(model: ChatModel) -> bool:
    """Return whether a model is known to reason before it answers: it has an attribute `reasons` that says so."""
    return bool(getattr(model, "reasons", False))


class WrappedModel:
    """A model in front of another one, whose name and price it has. A subclass answers the questions."""

    def __init__(self, model: ChatModel) -> None:
        """Wrap a model."""
        self._model = model

    @property
    def name(self) -> str:
        """Name of the other one."""
        return self._model.name

    @property
    def price(self) -> Price | None:
        """Price of the other one; None if it is unknown."""
        return self._model.price

    @property
    def reasons(self) -> bool:
        """Whether the other one reasons before it answers."""
        return reasons(self._model)

    async def close(self) -> None:
        """Close the other one."""
        await self._model.close()


_MILLION = 1_000_000


class Tariff:
    """Prices of one model: those of the configuration, else those of the price list for that model at that provider."""

    def __init__(self, config: ModelConfig, provider: Provider | None = None) -> None:
        """Look up nothing yet. `provider` is the one that the configuration names unless given."""
        self._config, self._provider = config, provider

    @functools.cached_property
    def price(self) -> Price | None:
        """US dollars for a million tokens; None if the price is unknown.

        If the list has tiers (long prompts cost more), this is the most expensive tier, because a cap on money must hold for it.
        """
        if (own := self._config.price) is not None:
            return Price(input=own.input, output=own.output, cached=own.cached, cache_write=own.cache_write)
        rates = self._listed
        if rates is None:
            return None
        highest_in, highest_out = _highest(rates.input_mtok), _highest(rates.output_mtok)
        if highest_in is None:
            return None
        cached, written = _highest(rates.cache_read_mtok), _highest(rates.cache_write_mtok)
        return Price(input=highest_in, output=highest_out or 0.0, cached=cached, cache_write=written)

    def cost(self, usage: Usage) -> float | None:
        """Return the US dollars of a call. None: the price is unknown, or the server reported no tokens."""
        if not usage.input_tokens and not usage.output_tokens:
            return None
        if self._config.price is not None:
            return None if self.price is None else cost_at(usage, self.price)
        if self._listed is None:
            return None
        return float(self._listed.calc_price(_counted(usage))["total_price"])

    @functools.cached_property
    def _listed(self) -> Any:
        """Rates of the price list; None if it does not know the model at that provider."""
        import genai_prices

        provider = self._provider or serving(self._config)
        tokens = _counted(Usage(input_tokens=1, output_tokens=1))
        try:
            if provider.prices:
                return genai_prices.calc_price(tokens, self._config.model, provider_id=provider.prices).model_price
            return genai_prices.calc_price(tokens, self._config.model, provider_api_url=provider.all_endpoints[0].base_url).model_price
        except LookupError:
            return None


def cost_at(usage: Usage, price: Price) -> float:
    """Return the US dollars of a call at a price.

    Tokens read from the cache and written into it are part of the input, and cost as much unless they have a separate price.
    """
    read = price.input if price.cached is None else price.cached
    write = price.input if price.cache_write is None else price.cache_write
    fresh = usage.input_tokens - usage.cached_tokens - usage.cache_write_tokens
    paid = fresh * price.input + usage.cached_tokens * read + usage.cache_write_tokens * write + usage.output_tokens * price.output
    return paid / _MILLION


def _counted(usage: Usage) -> Any:
    import genai_prices

    return genai_prices.Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cached_tokens or None,
        cache_write_tokens=usage.cache_write_tokens or None,
        output_tokens=usage.output_tokens or None,
    )


def _highest(rate: Any) -> float | None:
    if rate is None or isinstance(rate, Decimal):
        return None if rate is None else float(rate)
    return float(max([rate.base, *(tier.price for tier in rate.tiers)]))
