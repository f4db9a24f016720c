"""Providers as data: their addresses, the capabilities of their models, and their rate limits."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from exact.config import AtLeastOne, ModelConfig, Strict
from exact.errors import UsageError, unknown
from exact.untrusted import parse_yaml, read_yaml

DEFAULT, OTHER = "openai", "compatible"
"""The provider of a model that names none: without a base_url, and with one."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
Grammar = Literal["grammar", "structured_outputs", "ebnf"]
Limit = Literal["max_tokens", "max_completion_tokens"]

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class ModelCapabilities(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """Features of requests that a server supports. None: unknown; the feature is requested, and left out once it is refused."""

    n: bool | None = None
    """Several choices in one request. Without it they are requested in parallel."""
    logprobs: bool | None = None
    """Log-probabilities of tokens. If false, answers come without them."""
    top_logprobs: int | None = None
    """Most likeliest tokens that can be listed at each position. 0: none."""
    json_schema: bool | None = None
    """Answers constrained by a JSON Schema. Without it the schema is not sent, and the text is parsed."""
    grammar: Grammar | Literal[False] | None = None
    """Field for a grammar of the answer: `grammar` (llama.cpp; None too), `structured_outputs` (vLLM), `ebnf` (SGLang). False: none."""
    tools: bool | None = None
    """A tool that the model must call. If it is true and `json_schema` is false, the schema is sent as that tool's parameters."""
    images: bool | None = None
    """Pictures in messages. Without it a picture is replaced by a note."""
    seed: bool | None = None
    """A sampling seed."""
    sampling: bool | None = None
    """Settings `temperature` and `top_p`."""
    both: bool | None = None
    """Both `temperature` and `top_p` in one request. Without it `temperature` is sent alone."""
    system: bool | None = None
    """A system turn. Without it its text begins the first user turn."""
    limit: Limit | None = None
    """Name of the cap on new tokens."""
    least_tokens: AtLeastOne | None = None
    """Fewest new tokens that the cap may name. A lower cap is raised to it."""
    cache: bool | None = None
    """Cache marks: `cache_control` of the messages API, `prompt_cache_key` of the others. The chat API gets it only if this is true."""
    items: bool | None = None
    """Reasoning and tool calls of the model's earlier turns, sent back as they came. Without it their text is sent back."""
    reasons: bool | None = None
    """Whether the model reasons before it answers, so that prompts give its thoughts no place. None: the first answers show it."""
    computer: str = ""
    """Type of the model's own computer tool, for `policy.actions: computer`. Empty: `computer` in the responses API, `computer_20250124` in
    the messages API."""


class Endpoint(Strict, frozen=True, kw_only=True):
    """One address at which a provider's models are served."""

    base_url: str
    """Address of the API; `${NAME}` stands for the environment variable of that name."""
    api_key_env: str | None = None
    """Environment variable that holds the key. None: the provider's."""
    model: str = ""
    """Name of the model there, such as that of an Azure deployment. Empty: the configured name."""
    weight: Positive = 1.0
    """Share of the calls, relative to the other endpoints."""


class Provider(Strict, frozen=True, kw_only=True):
    """A service of models."""

    name: str = ""
    """Key in the file of providers."""
    kind: Literal["openai", "azure"] = "openai"
    """Form of the API. azure: Azure OpenAI with deployments and an api_version; openai: every other."""
    api: Literal["chat", "responses", "messages"] = "chat"
    """API of models that name none."""
    base_url: str = ""
    """Address of the API, if there is one endpoint."""
    endpoints: tuple[Endpoint, ...] = ()
    """Several endpoints. Empty: `base_url` alone."""
    api_key_env: str = ""
    """Environment variable that holds the key. Empty: no key is needed."""
    token: str = ""
    """Source of a token in each of a key: `azure` for DefaultAzureCredential, or `package.module:function`, which may be asynchronous."""
    api_version: str = ""
    """Version of the Azure API."""
    prices: str = ""
    """Name in the price list. Empty: it is found by the address."""
    capabilities: ModelCapabilities = ModelCapabilities()
    """Capabilities of all models."""
    models: dict[str, ModelCapabilities] = {}
    """Capabilities of some models, by the prefix of their names."""
    concurrency: AtLeastOne = 32
    """Requests in flight at once at one endpoint."""
    requests_per_minute: Positive | None = None
    """Requests a minute at one endpoint. None: no limit."""
    tokens_per_minute: Positive | None = None
    """Tokens a minute at one endpoint, in and out. None: no limit."""

    @property
    def all_endpoints(self) -> tuple[Endpoint, ...]:
        """Endpoints, at least one."""
        return self.endpoints or (Endpoint(base_url=self.base_url),)

    def takes(self, model: str) -> ModelCapabilities:
        """Return the capabilities of a model: the entry of `models` with the longest prefix of its name, over `capabilities`."""
        fits = [name for name in self.models if model.startswith(name)]
        over = msgspec.structs.asdict(self.models[max(fits, key=len)]) if fits else {}
        return msgspec.structs.replace(self.capabilities, **{key: value for key, value in over.items() if value not in (None, "")})


def providers(path: str = "") -> dict[str, Provider]:
    """Return the package's providers, overridden by those of a file. Raises UsageError if the file cannot be read."""
    found = dict(_packaged())
    if path:
        try:
            found |= _read(read_yaml(Path(path)), path)
        except OSError as error:
            raise UsageError(f"cannot read models.providers {path}: {error.strerror}: name a YAML file") from error
    return found


@functools.cache
def _packaged() -> Mapping[str, Provider]:
    text = (resources.files("exact.models") / "providers.yaml").read_text(encoding="utf-8")
    return _read(parse_yaml(text, "providers.yaml"), "providers.yaml")


def provider_name(config: ModelConfig) -> str:
    """Return the name of a model's provider."""
    return config.provider or (OTHER if config.base_url else DEFAULT)


def api_of(config: ModelConfig, provider: Provider) -> Literal["chat", "responses", "messages", "classify"]:
    """Return the API that a model is asked by."""
    return provider.api if config.api == "auto" else config.api


def serving(config: ModelConfig, known: Mapping[str, Provider] | None = None) -> Provider:
    """Return the provider of a model, with the model's own address and key applied and environment variables filled in.

    Raises UsageError if the provider is unknown or a variable is not set.
    """
    known = providers() if known is None else known
    name = provider_name(config)
    if name not in known:
        raise unknown("provider", name, known, way_out="(or add it to the file that models.providers names)")
    provider = known[name]
    if config.base_url:
        provider = msgspec.structs.replace(provider, base_url=config.base_url, endpoints=())
    if config.api_key_env:
        provider = msgspec.structs.replace(provider, api_key_env=config.api_key_env, token="")
    if not all(each.base_url for each in provider.all_endpoints):
        raise UsageError(f"provider {name} has no address: give base_url for {config.model}")
    endpoints = tuple(msgspec.structs.replace(each, base_url=_filled(each.base_url, name)) for each in provider.all_endpoints)
    return msgspec.structs.replace(provider, endpoints=endpoints)


def without_keys(provider: Provider) -> Provider:
    """Return a provider whose endpoints need no key, to check a configuration without asking a model."""
    endpoints = tuple(msgspec.structs.replace(each, api_key_env="") for each in provider.endpoints)
    return msgspec.structs.replace(provider, endpoints=endpoints, api_key_env="", token="")


def _filled(url: str, provider: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], "")
        if not found:
            raise UsageError(f"provider {provider} has no address: set the environment variable {match[1]}, or give base_url")
        return found

    return _VARIABLE.sub(value, url)


def _read(data: object, where: str) -> dict[str, Provider]:
    try:
        found = msgspec.convert(data or {}, dict[str, Provider])
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from error
    return {name: msgspec.structs.replace(provider, name=name) for name, provider in found.items()}
