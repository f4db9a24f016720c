"""An agent: who proposes, who judges, who learns. Put together from a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exact.agents.base import Policy, ValueFunction
from exact.config import Config, ModelConfig
from exact.errors import UsageError
from exact.models.base import ChatModel
from exact.reflection.base import Reflector


@dataclass(frozen=True, kw_only=True)
class Agent:
    """The parts that think. The search between them is named in the configuration."""

    policy: Policy
    value: ValueFunction
    reflector: Reflector | None = None
    oracle: bool = False
    """Whether any part sees what an agent must not; then every table says so."""


def build(config: Config, models: Callable[[str], ChatModel], *, run: str = "") -> Agent:
    """The agent of a configuration. `models(role)` gives the chat model of a role; it is only asked for roles that need one.

    `run` is the name that lessons keep as their provenance.
    """
    return Agent(policy=_policy(config, models), value=_value(config, models), reflector=_reflector(config, models, run))


def model_for(config: Config, role: str) -> ModelConfig:
    """The model of a role; value and reflection fall back on policy's. Raises UsageError if there is none."""
    found: ModelConfig | None = getattr(config.models, role) or config.models.policy
    if found is None:
        raise UsageError(f"the configuration names no model for {role}: add models.{role}.model")
    return found


def roles(config: Config) -> tuple[str, ...]:
    """The roles of a configuration that call a model."""
    parts = {"policy": config.policy.kind, "value": config.value.kind, "reflection": config.reflection.kind}
    if config.search.algorithm == "react":
        del parts["value"]
    return tuple(role for role, kind in parts.items() if kind == "llm")


def _policy(config: Config, models: Callable[[str], ChatModel]) -> Policy:
    match config.policy.kind:
        case "llm":
            from exact.agents.policy.llm import LLMPolicy
            from exact.models.openai import sampling

            return LLMPolicy(models("policy"), config.policy, sampling=sampling(model_for(config, "policy")))
        case "random":
            from exact.agents.policy.random import RandomPolicy

            return RandomPolicy()
        case "builtin":
            from exact.agents.builtin.policy import BuiltinPolicy

            return BuiltinPolicy()


def _value(config: Config, models: Callable[[str], ChatModel]) -> ValueFunction:
    match config.value.kind:
        case "llm":
            from exact.agents.value.llm import LLMValue
            from exact.models.openai import sampling

            return LLMValue(models("value"), config.value, sampling=sampling(model_for(config, "value")))
        case "constant":
            from exact.agents.value.constant import ConstantValue

            return ConstantValue()
        case "builtin":
            from exact.agents.builtin.value import BuiltinValue

            return BuiltinValue()


def _reflector(config: Config, models: Callable[[str], ChatModel], run: str) -> Reflector | None:
    match config.reflection.kind:
        case "llm":
            from exact.models.openai import sampling
            from exact.reflection.llm import LLMReflector

            return LLMReflector(models("reflection"), sampling=sampling(model_for(config, "reflection")), run=run)
        case "builtin":
            from exact.reflection.builtin import BuiltinReflector

            return BuiltinReflector(run=run)
        case "none":
            return None
