"""Models, and what they may cost."""

from __future__ import annotations

import re
from typing import Any, Literal

from exact.config.strict import Amount, AtLeastOne, AtLeastZero, Share, Strict


class PriceConfig(Strict, frozen=True, kw_only=True):
    """US dollars for a million tokens, where the price list does not know the model."""

    input: Amount
    output: Amount
    cached: Amount | None = None
    """Of input that the server had in its prefix cache; None: as much as other input."""


class ModelConfig(Strict, frozen=True, kw_only=True):
    """One model. Keys come from the environment only."""

    model: str
    provider: str = ""
    """A name in providers.yaml (`exact config providers` lists them). Empty: `openai`, or with a base_url `compatible`."""
    base_url: str = ""
    """Of the server, where it is not the provider's."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; empty: the provider's."""
    temperature: Amount = 1.0
    top_p: Share = 0.95
    max_tokens: AtLeastOne = 512
    timeout: Amount = 120.0
    """Seconds for one call with all its retries."""
    retries: AtLeastZero = 4
    logprobs: bool = False
    api: Literal["chat", "classify"] = "chat"
    """classify: a classifier for `value.kind: trained`, asked at `/classify`: see docs/models.md."""
    price: PriceConfig | None = None
    extra: dict[str, Any] = {}
    """Further fields of the request as the server names them: `{reasoning_effort: low}`."""

    def __post_init__(self) -> None:
        if re.search("[@?]", self.base_url.partition("://")[2]):
            raise ValueError("a base_url holds no credentials and no query: keys come from the environment (`api_key_env`)")


class CacheConfig(Strict, frozen=True, kw_only=True):
    """Answers that were given before."""

    mode: Literal["none", "read-write", "replay-only"] = "none"
    """read-write: an equal question has the answer it had before. replay-only: a question that was not asked before is an error."""
    path: str = ""
    """SQLite file, which runs may share; empty: `answers.sqlite` in the run directory."""


class ModelsConfig(Strict, frozen=True, kw_only=True):
    """A model for each role. `value` and `reflection` are `policy`'s where not given; `embedding` has none where not given."""

    policy: ModelConfig | None = None
    value: ModelConfig | None = None
    reflection: ModelConfig | None = None
    embedding: ModelConfig | None = None
    parts: dict[str, ModelConfig] = {}
    """Models of parts of a role, by the part's name: `value.judge`. A part without one has that of what stands before its last dot."""
    providers: str = ""
    """Path of a YAML file with further providers; a name that the package has too is the file's."""
    cache: CacheConfig = CacheConfig()

    @property
    def judges(self) -> dict[str, ModelConfig]:
        """Models that a benchmark's verdicts are asked of: the part `evaluator` and parts of it, by name."""
        return {name: model for name, model in self.parts.items() if name.partition(".")[0] == "evaluator"}
