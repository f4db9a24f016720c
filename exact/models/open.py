"""The models of a configuration, opened: roles that name the same model share it, and those at one endpoint share its pace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from exact.config import ModelConfig, ModelsConfig
from exact.models.base import ChatModel
from exact.models.cache import AnswerCache, CachedModel
from exact.models.embedding import EmbeddingModel, OpenAIEmbedding
from exact.models.openai import OpenAIModel, pace
from exact.models.pace import Pace
from exact.models.providers import Endpoint, Provider, providers, serving
from exact.models.roles import model_for


class Paces:
    """How fast each endpoint may be asked, by its address and whose key."""

    def __init__(self, share: float = 1.0) -> None:
        """`share`: the part of what providers allow that is this process's, in (0, 1], where others ask them too."""
        self._share = share
        self.made: dict[tuple[str, str | None], Pace] = {}

    def __call__(self, provider: Provider, place: Endpoint) -> Pace:
        key = (place.base_url, place.api_key_env or provider.api_key_env)
        return self.made.setdefault(key, pace(provider, share=self._share))


class Models:
    """Gives each role its model. Nothing is opened before it is asked for."""

    def __init__(self, config: ModelsConfig, *, folder: Path | None = None, paces: Paces | None = None) -> None:
        """`folder`: where the cache lies, unless its path is configured. `paces`: shared with others that ask the same endpoints.

        Raises UsageError.
        """
        self._config, self._known = config, providers(config.providers)
        self._opened: dict[bytes, Any] = {}
        self._paces = paces or Paces()
        self._cache = AnswerCache(self._path(folder)) if config.cache.mode != "none" else None

    def chat(self, role: str) -> ChatModel:
        """The chat model of a role or of a part of one. Raises UsageError."""
        config = model_for(self._config, role)
        key = b"chat" + _key(config)
        if key not in self._opened:
            self._opened[key] = self._cached(OpenAIModel(config, provider=serving(config, self._known), paces=self._paces), config)
        model: ChatModel = self._opened[key]
        return model

    def embedding(self) -> EmbeddingModel:
        """The embedding model. Raises UsageError where none is configured."""
        config = model_for(self._config, "embedding")
        key = b"embedding" + _key(config)
        if key not in self._opened:
            self._opened[key] = OpenAIEmbedding(config, provider=serving(config, self._known), paces=self._paces)
        model: EmbeddingModel = self._opened[key]
        return model

    async def close(self) -> None:
        """Lets go of all connections and of the cache."""
        for model in self._opened.values():
            await model.close()
        self._opened.clear()
        if self._cache is not None:
            self._cache.close()

    def _cached(self, model: OpenAIModel, config: ModelConfig) -> ChatModel:
        mode = self._config.cache.mode
        if self._cache is None or mode == "none":
            return model
        return CachedModel(model, self._cache, mode, about=msgspec.json.encode(config.extra, order="deterministic").decode())

    def _path(self, folder: Path | None) -> Path:
        return Path(self._config.cache.path) if self._config.cache.path else (folder or Path()) / "answers.sqlite"


def _key(config: ModelConfig) -> bytes:
    return msgspec.json.encode(config, order="deterministic")
