"""An agent: who proposes, who judges, who learns. Put together from a configuration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from exact.agents.base import Comparator, Policy, ValueFunction
from exact.agents.roles import allows_several, model_for
from exact.agents.siblings import ValueComparator
from exact.agents.value.build import build_comparator, build_value_function
from exact.config import Config, PolicyConfig
from exact.environments.base import EnvironmentFactory
from exact.environments.oracle import EpisodeScores, informed_factory
from exact.errors import UsageError
from exact.models.base import ChatModel
from exact.reflection.base import Reflector


@dataclass(frozen=True, kw_only=True)
class Agent:
    """The parts that think. The search between them is named in the configuration."""

    policy: Policy
    value: ValueFunction
    reflector: Reflector | None = None
    policies: tuple[Policy, ...] = ()
    """All who propose, where a search chooses among several; empty: `policy` alone."""
    comparator: Comparator | None = None
    """Who judges states against each other; None: by their values."""
    oracle: bool = False
    """Whether any part sees what an agent must not; then every table says so."""
    verdicts: EpisodeScores | None = None
    """Where an oracle's environments write what it sees."""

    def seeing(self, environments: EnvironmentFactory) -> EnvironmentFactory:
        """The environments to attempt a task in: these, or for an oracle the same with their verdicts told."""
        return environments if self.verdicts is None else informed_factory(environments, self.verdicts)

    def proposer(self, index: int) -> Policy:
        """The policy of an index. Raises UsageError if there is none."""
        policies = self.policies or (self.policy,)
        if index >= len(policies):
            raise UsageError(f"the search asks for policy {index}, but the agent has {len(policies)}: add it to Agent.policies")
        return policies[index]

    @property
    def compares(self) -> Comparator:
        """Who judges states against each other."""
        return self.comparator or ValueComparator(self.value)


def build_agent(config: Config, models: Callable[[str], ChatModel], *, run: str = "") -> Agent:
    """The agent of a configuration. `models(role)` gives the chat model of a role; it is only asked for roles that need one.

    `run` is the name that lessons keep as their provenance.
    """
    verdicts: EpisodeScores | None = {} if config.value.kind == "oracle" else None
    return Agent(
        policy=(policy := _build_policy(config.policy, config, models)),
        policies=(policy, *(_build_policy(arm, config, models) for arm in config.arms)) if config.arms else (),
        value=build_value_function(config, config.value, models, verdicts),
        comparator=build_comparator(config, models),
        reflector=_build_reflector(config, models, run),
        oracle=verdicts is not None,
        verdicts=verdicts,
    )


def _build_policy(settings: PolicyConfig, config: Config, models: Callable[[str], ChatModel]) -> Policy:
    match settings.kind:
        case "llm":
            from exact.agents.policy.llm import LLMPolicy
            from exact.models.openai import sampling

            model = model_for(config, settings.role)
            return LLMPolicy(models(settings.role), settings, sampling=sampling(model), several=allows_several(config, settings.role))
        case "random":
            from exact.agents.policy.prior import RandomPolicy

            return RandomPolicy()
        case "builtin":
            from exact.agents.builtin.policy import BuiltinPolicy

            return BuiltinPolicy()


def _build_reflector(config: Config, models: Callable[[str], ChatModel], run: str) -> Reflector | None:
    match config.reflection.kind:
        case "llm":
            from exact.models.openai import sampling
            from exact.reflection.llm import LLMReflector

            return LLMReflector(
                models("reflection"), sampling=sampling(model_for(config, "reflection")), run=run,
                observation_tokens=config.reflection.observation_tokens,
            )  # fmt: skip
        case "builtin":
            from exact.reflection.builtin import BuiltinReflector

            return BuiltinReflector(run=run)
        case "none":
            return None
