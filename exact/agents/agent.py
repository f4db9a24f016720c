"""Agents: policies, value functions and reflectors, assembled from a configuration.

Detector of injections that asks a model, beside the rules of exact/text.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from exact.agents.answer import Answerer
from exact.agents.base import Comparator, Policy, ValueFunction
from exact.agents.roles import allows_several, check_policy_model
from exact.agents.siblings import ValueComparator
from exact.agents.value.build import build_comparator, build_value_function
from exact.agents.value.controls import RewardValue
from exact.config import Config, PolicyConfig
from exact.config.agents import POLICY_GROUP
from exact.environments.base import EnvironmentFactory
from exact.environments.oracle import EpisodeScores, informed_factory
from exact.environments.reward import rewarded_factory
from exact.errors import AnswerError, UsageError
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.models.open import model_for
from exact.observation import Observation
from exact.parts import check_part
from exact.plugins import make_plugin
from exact.prompts.ask import ask, asks
from exact.prompts.library import render_prompt
from exact.reflection.base import Reflector
from exact.views.view import fit_observation


@dataclass(frozen=True, kw_only=True)
class Agent:
    """The components that call models or heuristics. The configuration names the search algorithm between them."""

    policy: Policy
    value: ValueFunction
    reflector: Reflector | None = None
    policies: tuple[Policy, ...] = ()
    """All policies, for a search that chooses among several. Empty: `policy` alone."""
    comparator: Comparator | None = None
    """Compares states with each other. None: states are compared by their values."""
    answerer: Answerer | None = None
    """Puts final answers into the objects that tasks ask for. None: the words of the answer are read."""
    detector: Detector | None = None
    """Looks for injections in observations, beside the rules. None: the rules alone."""
    oracle: bool = False
    """Whether a component uses the benchmark's own score. Every table marks such an agent."""
    episode_scores: EpisodeScores | None = None
    """Table in which an oracle's environments record scores. None for other agents."""

    def __post_init__(self) -> None:
        """Raise UsageError for a part that is a class, or lacks the method of its contract."""
        for policy in (self.policy, *self.policies):
            check_part("policy", policy, "propose")
        check_part("value", self.value, "evaluate")
        for role, part, method in (
            ("reflector", self.reflector, "reflect"), ("comparator", self.comparator, "compare"), ("detector", self.detector, "marks"),
        ):  # fmt: skip
            if part is not None:
                check_part(role, part, method)

    def informed_factory(self, environments: EnvironmentFactory) -> EnvironmentFactory:
        """Return the factory to attempt tasks with.

        For an oracle, its environments also record their scores in `episode_scores`; for a RewardValue, their rewards in its `totals`.
        """
        if isinstance(self.value, RewardValue):
            return rewarded_factory(environments, self.value.totals)
        return environments if self.episode_scores is None else informed_factory(environments, self.episode_scores)

    @property
    def uses_reward(self) -> bool:
        """Whether the value function reads the rewards of the environment."""
        return isinstance(self.value, RewardValue)

    def proposer(self, index: int) -> Policy:
        """Return the policy at `index`.

        Raises UsageError if the agent has no such policy.
        """
        policies = self.policies or (self.policy,)
        if index >= len(policies):
            raise UsageError(f"the search asks for policy {index}, but the agent has {len(policies)}: add it to Agent.policies")
        return policies[index]

    @property
    def state_comparator(self) -> Comparator:
        """The comparator of states: `comparator`, or a comparison by values."""
        return self.comparator or ValueComparator(self.value)


def build_agent(config: Config, models: Callable[[str], ChatModel], *, run: str = "") -> Agent:
    """Build the agent that a configuration describes.

    `models(role)` returns the chat model of a role. It is called only for roles that need a model. `run` is the name of the run, which
    reflections record as their provenance.
    """
    episode_scores: EpisodeScores | None = {} if config.value.kind == "oracle" else None
    return Agent(
        policy=(policy := _build_policy(config.policy, config, models)),
        policies=(policy, *(_build_policy(arm, config, models) for arm in config.arms)) if config.arms else (),
        value=build_value_function(config, config.value, models, episode_scores),
        comparator=build_comparator(config, models),
        reflector=_build_reflector(config, models, run),
        answerer=_build_answerer(config, models),
        detector=_build_detector(config, models),
        oracle=episode_scores is not None,
        episode_scores=episode_scores,
    )


def _build_policy(settings: PolicyConfig, config: Config, models: Callable[[str], ChatModel]) -> Policy:
    match settings.kind:
        case "llm":
            from exact.agents.policy.llm import LLMPolicy
            from exact.models.openai import sampling

            model = model_for(config.models, settings.role)
            check_policy_model(settings, config)
            if settings.form == "likeliest":
                from exact.agents.policy.likeliest import LikeliestPolicy

                return LikeliestPolicy(models(settings.role), settings, config.view, sampling=sampling(model))
            return LLMPolicy(
                models(settings.role), settings, config.view, sampling=sampling(model), several=allows_several(config, settings.role)
            )
        case "random":
            from exact.agents.policy.prior import RandomPolicy

            return RandomPolicy()
        case "lexical":
            from exact.agents.builtin.policy import LexicalPolicy

            return LexicalPolicy()
        case "learned":
            from exact.agents.learned.agent import learned_policy

            return learned_policy(settings.options)
        case _:
            own: Policy = make_plugin("policy.kind", settings.kind, POLICY_GROUP, settings.options)
            return own


def _build_answerer(config: Config, models: Callable[[str], ChatModel]) -> Answerer | None:
    if config.policy.kind != "llm":
        return None
    from exact.models.openai import sampling

    role = config.policy.role
    return Answerer(models(role), config.view, sampling=sampling(model_for(config.models, role)))


def _build_detector(config: Config, models: Callable[[str], ChatModel]) -> Detector | None:
    if config.models.detector is None:
        return None
    from exact.models.openai import sampling

    return LLMDetector(models("detector"), sampling=sampling(config.models.detector))


def _build_reflector(config: Config, models: Callable[[str], ChatModel], run: str) -> Reflector | None:
    match config.reflection.kind:
        case "llm":
            from exact.models.openai import sampling
            from exact.reflection.llm import LLMReflector

            return LLMReflector(
                models("reflection"), sampling=sampling(model_for(config.models, "reflection")), run=run,
                observation_tokens=config.view.observation_tokens,
            )  # fmt: skip
        case "builtin":
            from exact.reflection.contrast import BuiltinReflector

            return BuiltinReflector(run=run)
        case "none":
            return None


ROLE = "detector"
TOKENS = 6000
"""Most tokens of an observation that the model is shown."""
MARK = "speaks to a model, as a model found"
"""The mark that the model adds. Its words about the page are in its call, and in no prompt."""
_ANSWER = re.compile(r"^\W*injection\W*\s(yes|no)\b", re.I | re.M)


class Detector(Protocol):
    """A further detector of injections."""

    async def marks(self, observation: Observation, *, node: int, seed: int, selection: int = -1) -> tuple[str, ...]:
        """Return how an observation speaks to a model, in a few words each; empty if it does not. Raises ModelError."""
        ...


class LLMDetector:
    """Asks a model whether an observation speaks to it. The prompt is `detector`."""

    def __init__(self, model: ChatModel, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._sampling = model, sampling

    async def marks(self, observation: Observation, *, node: int, seed: int, selection: int = -1) -> tuple[str, ...]:
        """Return the mark `MARK` if the model finds that the observation speaks to it. Raises ModelError."""
        shown, left_out = fit_observation(observation, TOKENS, model=self._model.name)
        prompt = render_prompt("detector", observation=shown)
        request = ChatRequest(
            messages=prompt.messages(),
            sampling=self._sampling,
            role=ROLE,
            node=node,
            prompt=prompt.id,
            left_out=left_out + prompt.cut,
            selection=selection,
        )
        found = await ask(self._model, request, parse_detection, seed=seed)
        return (MARK,) if any(found) else ()


@asks("write one line with the word Injection, a colon, and no, or yes and what it tries")
def parse_detection(text: str) -> bool:
    """Return whether an answer finds an injection. Raises AnswerError if it says neither, or both."""
    said = {match[1].lower() for match in _ANSWER.finditer(text)}
    if len(said) != 1:
        raise AnswerError("the answer says neither yes nor no, or both: write one line")
    return said == {"yes"}
