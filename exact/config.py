"""Configuration of a run: one YAML file, read strictly.

Every key has a type and a default; an unknown key is an error that names the nearest valid one. `--set search.c=1` overrides one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from exact.errors import UsageError, unknown

AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


class SearchConfig(Strict, frozen=True, kw_only=True):
    """Which algorithm looks ahead, and how far."""

    algorithm: Literal["react", "greedy", "mcts"] = "mcts"
    iterations: AtLeastOne = 16
    """Backed-up visits of the tree for each committed action; what a step leaves over, the next may use."""
    k: AtLeastOne = 6
    """Distinct proposals asked for at an expansion."""
    c: Amount = 0.5
    """Exploration constant of PUCT on values in [0, 1]."""
    depth: AtLeastOne = 8
    """How many actions below the root a search may look."""
    retries: AtLeastZero = 2
    """How often a failed piece of work is asked for again before its node is closed."""


class PolicyConfig(Strict, frozen=True, kw_only=True):
    """Who proposes actions."""

    kind: Literal["builtin", "llm", "random"] = "builtin"
    samples: AtLeastOne = 8
    """llm: answers drawn for one expansion; priors are their frequencies."""
    prior_floor: Share = 0.02
    """llm: no proposal's prior is below this."""
    images: bool = False
    """llm: whether the screenshot goes into the prompt."""
    history: AtLeastZero = 5
    """llm: how many past steps the prompt shows."""


class ValueConfig(Strict, frozen=True, kw_only=True):
    """Who judges states."""

    kind: Literal["builtin", "llm", "constant"] = "builtin"
    samples: AtLeastOne = 4
    """llm: judgements drawn for one state; the value is their mean."""
    images: bool = False
    history: AtLeastZero = 5


class ReflectionConfig(Strict, frozen=True, kw_only=True):
    """What is learned from a run, and what is recalled in it."""

    kind: Literal["none", "builtin", "llm"] = "builtin"
    memory: str = ""
    """Path of the SQLite memory; empty: `memory.sqlite` in the run directory."""
    threshold: Share = 0.25
    """A lesson is written for the most surprising step if its |surprise| reaches this."""
    k: AtLeastZero = 2
    """How many reflections are shown at an expansion or evaluation."""
    similarity: Share = 0.3
    """Cosine below which a reflection is not shown."""
    exclude_same_task: bool = False
    """Benchmark mode: nothing learned on any seed of the same task is shown."""


class PriceConfig(Strict, frozen=True, kw_only=True):
    """US dollars for a million tokens, where the price list does not know the model."""

    input: Amount
    output: Amount


class ModelConfig(Strict, frozen=True, kw_only=True):
    """One chat model. Keys come from the environment only."""

    model: str
    base_url: str = "https://api.openai.com/v1"
    api_key_env: str = "OPENAI_API_KEY"
    """Name of the environment variable that holds the key."""
    temperature: Amount = 1.0
    top_p: Share = 0.95
    max_tokens: AtLeastOne = 512
    timeout: Amount = 120.0
    """Seconds for one call with all its retries."""
    retries: AtLeastZero = 4
    logprobs: bool = False
    price: PriceConfig | None = None


class ModelsConfig(Strict, frozen=True, kw_only=True):
    """A model for each role; `value` and `reflection` are `policy`'s where not given."""

    policy: ModelConfig | None = None
    value: ModelConfig | None = None
    reflection: ModelConfig | None = None


class Limits(Strict, frozen=True, kw_only=True):
    """Hard caps on one task. None: no cap on that."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    actions: AtLeastZero | None = 15
    """Committed actions."""
    transitions: AtLeastZero | None = None
    """Environment steps, replays included. When they are used up, actions are still committed, unexplored."""
    evaluations: AtLeastZero | None = None
    """Judgements by the value function."""
    seconds: Amount | None = None
    """Wall time."""


class BrowserConfig(Strict, frozen=True, kw_only=True):
    """The browser world."""

    headed: bool = False
    screenshots: bool = True
    """Whether each state's screenshot is kept (reports and image prompts want it)."""
    width: AtLeastOne = 1280
    height: AtLeastOne = 720
    settle_seconds: Amount = 3.0
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
            data = yaml.safe_load(path.read_text("utf-8")) or {}
        except OSError as error:
            raise UsageError(f"cannot read configuration {path}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping: write `section: {{key: value}}`")
    for override in overrides:
        key, found, value = override.partition("=")
        if not found:
            raise UsageError(f"--set {override}: write --set key=value")
        try:
            _set(data, key, yaml.safe_load(value))
        except yaml.YAMLError as error:
            raise UsageError(f"--set {override}: the value is not YAML: {' '.join(str(error).split())}") from error
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


def _set(data: dict[str, Any], path: str, value: object) -> None:
    *sections, key = path.split(".")
    for section in sections:
        nested = data.get(section) or {}
        if not isinstance(nested, dict):
            raise UsageError(f"--set {path}: {section} has no keys below it")
        data[section] = nested
        data = nested
    data[key] = value


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
