"""Configuration of a run: one YAML file, read strictly.

Every key has a type and a default; an unknown key is an error that names the nearest valid one. `--set search.c=1` overrides one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from exact.errors import UsageError, unknown


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


class SearchConfig(Strict, frozen=True, kw_only=True):
    """Which algorithm looks ahead, and how far."""

    algorithm: Literal["react", "greedy", "mcts"] = "mcts"
    iterations: int = 16
    """Backed-up visits of the tree for each committed action; what a step leaves over, the next may use."""
    k: int = 6
    """Distinct proposals asked for at an expansion."""
    c: float = 0.5
    """Exploration constant of PUCT on values in [0, 1]."""
    depth: int = 8
    """How many actions below the root a search may look."""
    retries: int = 2
    """How often a failed piece of work is asked for again before its node is closed."""


class PolicyConfig(Strict, frozen=True, kw_only=True):
    """Who proposes actions."""

    kind: Literal["builtin", "llm", "random"] = "builtin"
    samples: int = 8
    """llm: answers drawn for one expansion; priors are their frequencies."""
    prior_floor: float = 0.02
    """llm: no proposal's prior is below this."""
    images: bool = False
    """llm: whether the screenshot goes into the prompt."""
    history: int = 5
    """llm: how many past steps the prompt shows."""


class ValueConfig(Strict, frozen=True, kw_only=True):
    """Who judges states."""

    kind: Literal["builtin", "llm", "constant"] = "builtin"
    samples: int = 4
    """llm: judgements drawn for one state; the value is their mean."""
    images: bool = False
    history: int = 5


class ReflectionConfig(Strict, frozen=True, kw_only=True):
    """What is learned from a run, and what is recalled in it."""

    kind: Literal["none", "builtin", "llm"] = "builtin"
    memory: str = ""
    """Path of the SQLite memory; empty: `memory.sqlite` in the run directory."""
    threshold: float = 0.25
    """A lesson is written for the most surprising step if its |surprise| reaches this."""
    k: int = 2
    """How many reflections are shown at an expansion or evaluation."""
    similarity: float = 0.3
    """Cosine below which a reflection is not shown."""
    exclude_same_task: bool = False
    """Benchmark mode: nothing learned on any seed of the same task is shown."""


class PriceConfig(Strict, frozen=True, kw_only=True):
    """US dollars for a million tokens, where the price list does not know the model."""

    input: float
    output: float


class ModelConfig(Strict, frozen=True, kw_only=True):
    """One chat model. Keys come from the environment only."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    temperature: float = 1.0
    top_p: float = 0.95
    max_tokens: int = 512
    timeout: float = 120.0
    """Seconds for one call with all its retries."""
    retries: int = 4
    logprobs: bool = False
    price: PriceConfig | None = None


class ModelsConfig(Strict, frozen=True, kw_only=True):
    """A model for each role; `value` and `reflection` are `policy`'s where not given."""

    policy: ModelConfig | None = None
    value: ModelConfig | None = None
    reflection: ModelConfig | None = None


class Limits(Strict, frozen=True, kw_only=True):
    """Hard caps on one task. None: no cap on that."""

    money: float | None = None
    """US dollars."""
    calls: int | None = None
    """Model calls."""
    actions: int | None = 15
    """Committed actions."""
    transitions: int | None = None
    """Environment steps, replays included. When they are used up, actions are still committed, unexplored."""
    evaluations: int | None = None
    """Judgements by the value function."""
    seconds: float | None = None
    """Wall time."""


class BrowserConfig(Strict, frozen=True, kw_only=True):
    """The browser world."""

    headed: bool = False
    screenshots: bool = True
    """Whether each state's screenshot is kept (reports and image prompts want it)."""
    width: int = 1280
    height: int = 720
    settle_seconds: float = 3.0
    """Cap on waiting for a page to become quiet after an action."""
    allow_origins: tuple[str, ...] = ()
    """Origins that may be navigated to, besides the task's."""


class Config(Strict, frozen=True, kw_only=True):
    """A run's configuration."""

    name: str = "rmcts_builtin"
    seed: int = 0
    search: SearchConfig = SearchConfig()
    policy: PolicyConfig = PolicyConfig()
    value: ValueConfig = ValueConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    models: ModelsConfig = ModelsConfig()
    limits: Limits = Limits()
    browser: BrowserConfig = BrowserConfig()


def load(path: Path | None, overrides: Iterable[str] = ()) -> Config:
    """The configuration in a YAML file with `key.path=value` overrides applied. Raises UsageError."""
    import yaml

    data: Any = {}
    if path is not None:
        try:
            data = yaml.safe_load(path.read_text()) or {}
        except OSError as error:
            raise UsageError(f"cannot read configuration {path}: {error.strerror}") from error
        except yaml.YAMLError as error:
            raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping: write `section: {{key: value}}`")
    for override in overrides:
        _set(data, override, yaml.safe_load)
    return parse(data)


def parse(data: Mapping[str, Any]) -> Config:
    """A configuration from plain data. Raises UsageError with the key that is wrong."""
    _check_keys(data, Config, "")
    try:
        return msgspec.convert(data, Config)
    except msgspec.ValidationError as error:
        raise UsageError(f"configuration: {error}") from error


def dump(config: Config) -> str:
    """The configuration as YAML, every key written out."""
    import yaml

    return str(yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False))


def _set(data: dict[str, Any], override: str, read: Any) -> None:
    path, found, value = override.partition("=")
    if not found:
        raise UsageError(f"--set {override}: write --set key=value")
    *sections, key = path.split(".")
    for section in sections:
        nested = data.get(section) or {}
        if not isinstance(nested, dict):
            raise UsageError(f"--set {override}: {section} has no keys below it")
        data[section] = nested
        data = nested
    data[key] = read(value)


def _check_keys(data: object, section: type[msgspec.Struct], where: str) -> None:
    if not isinstance(data, Mapping):
        return
    types = {field.name: field.type for field in msgspec.structs.fields(section)}
    for key, value in data.items():
        if key not in types:
            raise unknown("configuration key", f"{where}{key}", [where + name for name in types])
        for kind in getattr(types[key], "__args__", (types[key],)):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                _check_keys(value, kind, f"{where}{key}.")
