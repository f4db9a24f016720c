"""Providers as data: who serves models, at which addresses, and what may be asked of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from exact.config import AtLeastOne, ModelConfig, Strict
from exact.errors import UsageError, unknown

DEFAULT, OTHER = "openai", "compatible"
"""The provider of a model that names none: without a base_url, and with one."""

Positive = Annotated[float, msgspec.Meta(gt=0)]
Limit = Literal["max_tokens", "max_completion_tokens"]

_VARIABLE = re.compile(r"\$\{(\w+)\}")


class Capabilities(Strict, frozen=True, kw_only=True, omit_defaults=True):
    """What a server takes. None: not known; it is asked for, and where that is refused, done without."""

    n: bool | None = None
    """Several answers in one request. Without it they are asked for in parallel."""
    logprobs: bool | None = None
    """Without them an answer has none."""
    json_schema: bool | None = None
    """Answers held to a JSON Schema. Without it the schema is not sent, and the text is parsed."""
    images: bool | None = None
    """Without it a picture is replaced by a note that there was one."""
    seed: bool | None = None
    sampling: bool | None = None
    """`temperature` and `top_p`."""
    both: bool | None = None
    """`temperature` and `top_p` at once; else `temperature` alone."""
    system: bool | None = None
    """A system turn. Without it its words stand at the top of the first user turn."""
    limit: Limit | None = None
    """The name of the cap on new tokens."""


class Endpoint(Strict, frozen=True, kw_only=True):
    """One place where a provider's models are served."""

    base_url: str
    """`${NAME}` stands for the environment variable of that name."""
    api_key_env: str | None = None
    """None: the provider's."""
    model: str = ""
    """The model's name there, such as that of an Azure deployment; empty: as configured."""
    weight: Positive = 1.0
    """Its share of the calls, beside the other endpoints'."""


class Provider(Strict, frozen=True, kw_only=True):
    """Who serves models."""

    name: str = ""
    kind: Literal["openai", "azure"] = "openai"
    """azure: Azure OpenAI with deployments and an api_version; openai: everything else."""
    base_url: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    """Several places; empty: `base_url` alone."""
    api_key_env: str = ""
    """Empty: no key is wanted."""
    token: str = ""
    """In place of a key: `azure` for DefaultAzureCredential, or `package.module:function`, which gives a token or an awaitable of one."""
    api_version: str = ""
    prices: str = ""
    """Its name in the price list; empty: it is found by its address."""
    capabilities: Capabilities = Capabilities()
    models: dict[str, Capabilities] = {}
    """Capabilities of models whose names begin so."""
    concurrency: AtLeastOne = 32
    """Requests under way at once at one endpoint."""
    requests_per_minute: Positive | None = None
    """At one endpoint, as are `tokens_per_minute`."""
    tokens_per_minute: Positive | None = None

    @property
    def places(self) -> tuple[Endpoint, ...]:
        """All endpoints, at least one."""
        return self.endpoints or (Endpoint(base_url=self.base_url),)

    def takes(self, model: str) -> Capabilities:
        """What is known of a model: the longest entry of `models` that its name begins with, over `capabilities`."""
        fits = [name for name in self.models if model.startswith(name)]
        over = msgspec.structs.asdict(self.models[max(fits, key=len)]) if fits else {}
        return msgspec.structs.replace(self.capabilities, **{key: value for key, value in over.items() if value is not None})


def providers(path: str = "") -> dict[str, Provider]:
    """The package's providers, and above them those of a file. Raises UsageError for a file that does not read."""
    found = _read((resources.files("exact.models") / "providers.yaml").read_text(encoding="utf-8"), "providers.yaml")
    if path:
        try:
            found |= _read(Path(path).read_text("utf-8"), path)
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read models.providers {path}: {error}") from error
    return found


def named(config: ModelConfig) -> str:
    """The name of a model's provider."""
    return config.provider or (OTHER if config.base_url else DEFAULT)


def serving(config: ModelConfig, known: Mapping[str, Provider] | None = None) -> Provider:
    """The provider of a model, with what the model's own configuration says otherwise, and environment variables put in.

    Raises UsageError for an unknown provider and for a variable that is not set.
    """
    known = providers() if known is None else known
    name = named(config)
    if name not in known:
        raise unknown("provider", name, known, way_out="(or add it to the file that models.providers names)")
    provider = known[name]
    if config.base_url:
        provider = msgspec.structs.replace(provider, base_url=config.base_url, endpoints=())
    if config.api_key_env:
        provider = msgspec.structs.replace(provider, api_key_env=config.api_key_env, token="")
    if not all(place.base_url for place in provider.places):
        raise UsageError(f"provider {name} has no address: give base_url for {config.model}")
    places = tuple(msgspec.structs.replace(place, base_url=_filled(place.base_url, name)) for place in provider.places)
    return msgspec.structs.replace(provider, endpoints=places)


def _filled(url: str, provider: str) -> str:
    def value(match: re.Match[str]) -> str:
        found = os.environ.get(match[1], "")
        if not found:
            raise UsageError(f"provider {provider} has no address: set the environment variable {match[1]}, or give base_url")
        return found

    return _VARIABLE.sub(value, url)


def _read(text: str, where: str) -> dict[str, Provider]:
    import yaml

    try:
        data: Any = yaml.safe_load(text) or {}
        found = msgspec.convert(data, dict[str, Provider])
    except yaml.YAMLError as error:
        raise UsageError(f"{where} is not YAML: {' '.join(str(error).split())}") from error
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from error
    return {name: msgspec.structs.replace(provider, name=name) for name, provider in found.items()}
