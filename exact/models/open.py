"""Opened models of a configuration. Roles that name the same model share it; models at one endpoint share its rate limiter.

Models of roles.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from exact.config import ModelConfig, ModelsConfig
from exact.errors import PartError, UsageError
from exact.models.base import ChatModel
from exact.models.providers import Endpoint, Provider, api_of, providers, serving, without_keys
from exact.parts import awaited, calling, check_part
from exact.plugins import is_plugin, is_registered, make_plugin

if TYPE_CHECKING:  # the clients are imported when a model is opened, which a run of the built-in agent does not do
    from exact.models.cache import AnswerCache
    from exact.models.embedding import EmbeddingModel
    from exact.models.rate_limiter import RateLimiter


MODEL_GROUP = "exact.models"
"""Group of entry points. The object is called with `model` and the fields of `extra`, and gives a ChatModel."""


class RateLimiters:
    """Rate limiters of endpoints, by address and by the variable of the key."""

    def __init__(self, share: float = 1.0, *, shared: str = "") -> None:
        """Start with none. `share`: this process's share of the providers' limits, in (0, 1], if other processes use them too.

        `shared`: file by which processes of this machine count requests and tokens together; empty: none.
        """
        self._share, self._shared = share, shared
        self.made: dict[tuple[str, str | None], RateLimiter] = {}
        """Limiters so far."""

    def __call__(self, provider: Provider, endpoint: Endpoint) -> RateLimiter:
        """Return the rate limiter of an endpoint, made on first use."""
        from exact.models.openai import rate_limiter
        from exact.models.rate_limiter import shared_rates

        key = (endpoint.base_url, endpoint.api_key_env or provider.api_key_env)
        if key not in self.made:
            name = f"{endpoint.base_url} {key[1] or ''}"
            self.made[key] = rate_limiter(provider, share=self._share, shared=shared_rates(self._shared), name=name)
        return self.made[key]


class Models:
    """The models of all roles, each opened on first use."""

    def __init__(
        self, config: ModelsConfig, *, folder: Path | None = None, limiters: RateLimiters | None = None, keys: bool = True
    ) -> None:
        """Open the cache. `folder` holds it unless its path is configured; `limiters` are shared with others that use the same endpoints.

        `keys`: whether keys must be in the environment; without them no model is asked. Raises UsageError.
        """
        self._keys = keys
        self._config, self._known = config, providers(config.providers)
        self._opened: dict[bytes, Any] = {}
        self._limiters = limiters or RateLimiters(shared=config.shared_limits)
        self._cache: AnswerCache | None = None
        if config.cache.mode != "none":
            from exact.models.cache import AnswerCache

            self._cache = AnswerCache(self._path(folder))

    def chat(self, role: str) -> ChatModel:
        """Return the chat model of a role, or of a part of one such as `value.judge`. Raises UsageError."""
        config = model_for(self._config, role)
        key = b"chat" + _key(config)
        if key not in self._opened and (is_plugin(config.provider) or is_registered(config.provider, MODEL_GROUP)):
            options = {"model": config.model, **config.extra}
            key_of = f"the provider of the model for {role}"
            made: ChatModel = make_plugin(key_of, config.provider, MODEL_GROUP, options)
            check_part(f"{key_of}: {config.provider}", made, "complete", "close", verb="gives")
            self._opened[key] = self._cached(made, config, "own")
        elif key not in self._opened:
            from exact.models.openai import OpenAIModel

            provider = serving(config, self._known) if self._keys else without_keys(serving(config, self._known))
            api = api_of(config, provider)
            self._opened[key] = self._cached(OpenAIModel(config, provider=provider, limiters=self._limiters), config, api)
        model: ChatModel = self._opened[key]
        return model

    def embedding(self) -> EmbeddingModel:
        """Return the embedding model. Raises UsageError if none is configured."""
        from exact.models.embedding import OpenAIEmbedding

        config = model_for(self._config, "embedding")
        key = b"embedding" + _key(config)
        if key not in self._opened:
            self._opened[key] = OpenAIEmbedding(config, provider=serving(config, self._known), limiters=self._limiters)
        model: EmbeddingModel = self._opened[key]
        return model

    async def close(self) -> None:
        """Close all connections and the cache. A model that does not close is a warning: its answers are there."""
        for model in self._opened.values():
            try:
                with calling("model.close", model):
                    await awaited(model.close())
            except PartError as error:
                logging.getLogger("exact").warning("%s", error)
        self._opened.clear()
        if self._cache is not None:
            self._cache.close()

    def _cached(self, model: ChatModel, config: ModelConfig, api: str) -> ChatModel:
        mode = self._config.cache.mode
        if self._cache is None or mode == "none":
            return model
        from exact.models.cache import CachedModel

        about = msgspec.json.encode(config.extra, order="deterministic").decode()
        about += f" {api}" if api in ("messages", "responses") else ""
        about += f" {config.structured}" if config.structured != "auto" else ""
        return CachedModel(model, self._cache, mode, about=about)

    def _path(self, folder: Path | None) -> Path:
        return Path(self._config.cache.path) if self._config.cache.path else (folder or Path()) / "answers.sqlite"


def _key(config: ModelConfig) -> bytes:
    return msgspec.json.encode(config, order="deterministic")


GENERAL = ("policy", "value", "reflection", "embedding", "detector")
"""Roles with a separate configuration key. Parts of them have dotted names, such as `value.judge`."""


def model_for(models: ModelsConfig, role: str) -> ModelConfig:
    """Return the model of a role: its own, else that of the role it is a part of, else the policy's. Embeddings have no default.

    `value.judge.2` is looked for as `value.judge.2`, `value.judge`, `value`, `policy`. Raises UsageError if there is none.
    """
    name = role
    while name not in GENERAL:
        if name in models.parts:
            return models.parts[name]
        name, dot, _ = name.rpartition(".")
        if not dot:
            raise UsageError(f"{role!r} is no role: use {', '.join(GENERAL)}, or a part such as value.judge")
    found: ModelConfig | None = getattr(models, name)
    if found is None and name not in ("embedding", "detector"):
        found = models.policy
    if found is None:
        raise UsageError(f"the configuration names no model for {role}: add models.{name}.model")
    return found
