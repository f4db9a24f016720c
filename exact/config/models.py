"""Configuration of models and their prices."""

from __future__ import annotations

import re
from typing import Any, Literal

from exact.config.aliases import Amount, AtLeastOne, AtLeastZero, Share, Strict


class PriceConfig(Strict, frozen=True, kw_only=True):
    """Price in US dollars for a million tokens, if the price list does not know the model."""

    input: Amount
    """Price of input."""
    output: Amount
    """Price of output."""
    cached: Amount | None = None
    """Price of input that the server had in its prefix cache. None: that of other input."""
    cache_write: Amount | None = None
    """Price of input that the server writes into its prefix cache. None: that of other input."""


Structured = Literal["auto", "always", "never"]
"""When answers are asked for as JSON."""


class ModelConfig(Strict, frozen=True, kw_only=True):
    """One model. Its key comes from an environment variable only."""

    model: str
    """Name of the model at the provider."""
    provider: str = ""
    """Name of a provider (`exact list providers` lists them). Empty: `openai`, or with a base_url `compatible`. `module:attribute`,
    `file.py:attribute` or a name in the entry points `exact.models`: your own ChatModel, made with `model` and the fields of `extra`."""
    base_url: str = ""
    """Address of the server. Empty: the provider's."""
    api_key_env: str = ""
    """Environment variable that holds the key. Empty: the provider's."""
    temperature: Amount = 1.0
    """Sampling temperature, at least 0."""
    top_p: Share = 0.95
    """Nucleus sampling: probability mass of the tokens that are sampled from."""
    max_tokens: AtLeastOne = 512
    """Most new tokens of one answer."""
    timeout: Amount = 120.0
    """Seconds for one call, including all its retries."""
    retries: AtLeastZero = 4
    """Retries of a failed request."""
    logprobs: bool = False
    """Request the log-probabilities of tokens."""
    api: Literal["auto", "chat", "responses", "messages", "classify"] = "auto"
    """API of the model. auto: the provider's, which is chat unless it says otherwise. chat: Chat Completions. responses: OpenAI's
    Responses. messages: Anthropic's Messages. classify: a classifier for `value.kind: trained`, asked at `/classify`: see
    docs/models.md."""
    structured: Structured = "auto"
    """When the answers of policies and value functions are asked for as JSON by a schema, if the server takes one. auto: after an answer
    whose lines cannot be read. always: at once, for models that do not keep to lines. never: never. See docs/models.md."""
    price: PriceConfig | None = None
    """Price of the model. None: that of the price list."""
    extra: dict[str, Any] = {}
    """Further fields of the request, as the server names them: `{reasoning_effort: low}`."""

    def __post_init__(self) -> None:
        if re.search("[@?]", self.base_url.partition("://")[2]):
            raise ValueError("a base_url holds no credentials and no query: keys come from the environment (`api_key_env`)")


class CacheConfig(Strict, frozen=True, kw_only=True):
    """Cache of answers."""

    mode: Literal["none", "read-write", "replay-only"] = "none"
    """read-write: an equal question gets its recorded answer. replay-only: a question without a recorded answer is an error."""
    path: str = ""
    """SQLite file, which runs may share. Empty: `answers.sqlite` in the run directory."""


class ModelsConfig(Strict, frozen=True, kw_only=True):
    """Models of the roles. `value` and `reflection` default to the model of `policy`; `embedding` and `detector` have no default."""

    policy: ModelConfig | None = None
    """Model of a policy of `kind: llm`."""
    value: ModelConfig | None = None
    """Model of the value function. None: that of the policy."""
    reflection: ModelConfig | None = None
    """Model of the reflector. None: that of the policy."""
    embedding: ModelConfig | None = None
    """Model of embeddings, for `reflection.embedding: model`."""
    detector: ModelConfig | None = None
    """Model that looks for text which speaks to a model in each observation, once, beside the rules; see docs/security.md. None: rules
    alone."""
    parts: dict[str, ModelConfig] = {}
    """Models of parts of a role, by name, such as `value.judge`. A part without one uses that of the name before its last dot."""
    providers: str = ""
    """YAML file with further providers, which override the package's by name."""
    shared_limits: str = ""
    """File by which processes of this machine count requests and tokens together, so that all of them stay within the providers' limits.
    Empty: each counts by itself. On Ray all processes count together without it."""
    cache: CacheConfig = CacheConfig()
    strict_nltk: bool = False
    """Whether answers in WebArena and VisualWebArena are split by nltk and its trained model of sentences, which you install, instead of by
    a rule; see docs/benchmarks.md. `--strict-nltk` sets it."""

    @property
    def judges(self) -> dict[str, ModelConfig]:
        """Models that benchmarks evaluate with, by name: the part `evaluator` and its parts."""
        return {name: model for name, model in self.parts.items() if name.partition(".")[0] == "evaluator"}
