"""Environments whose rewards a value function or a trainer reads.

An environment of reinforcement learning gives a reward for each step (`RewardSource`). `rewarded_factory` records the total reward of each
path of actions, which the value function of kind `reward` reads. `with_rewards` makes a RewardSource of any other environment: its score
when the episode ends is the reward of the last step.

Finds the pages of MiniWoB++: in the wheel `miniwob`, whose Python code is not loaded.
"""

from __future__ import annotations

import math
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import cast

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, ForkableFactory, RewardSource, Snapshot, Transition
from exact.environments.oracle import EpisodeScores, InformedFactory, InformedForkableFactory
from exact.errors import EnvironmentFailure, UsageError
from exact.observation import Observation
from exact.parts import calling
from exact.task import Outcome, Score, Task

Totals = EpisodeScores
"""Total rewards, on the environment's own scale, by task id followed by the canonical texts of the actions."""


def rewarded_factory(environments: EnvironmentFactory, totals: Totals) -> InformedFactory:
    """Wrap a factory so that the total reward of each path is written into `totals`. The result is forkable if the factory is."""
    if isinstance(environments, ForkableFactory):
        return _RewardedForkableFactory(environments, totals)
    return _RewardedFactory(environments, totals)


def reward_of(environment: Environment) -> float:
    """Return the reward of an environment's last step.

    Raises UsageError if the environment gives no rewards, EnvironmentFailure for one that is not a finite number.
    """
    if not callable(getattr(environment, "reward", None)):  # a wrapper hands it on
        raise UsageError(f"{type(environment).__name__} gives no rewards: it needs a method `reward() -> float`, or another value.kind")
    with calling("environment.reward", environment, EnvironmentFailure, admits=(UsageError,)):
        reward = float(cast(RewardSource, environment).reward())
    if not math.isfinite(reward):
        raise EnvironmentFailure(f"{type(environment).__name__} gave the reward {reward}: a reward is a finite number")
    return reward


class _Rewards(InformedFactory):
    async def record(self, environment: Environment, path: tuple[str, ...], action: Action, *, ended: bool, simulation: bool) -> None:
        """Record the total reward of the path."""
        self.scores[path] = self.scores.get(path[:-1], 0.0) + reward_of(environment)


class _RewardedFactory(_Rewards):
    """Factory of environments that record their rewards."""


class _RewardedForkableFactory(_Rewards, InformedForkableFactory):
    """Forkable factory of environments that record their rewards."""


class ScoredEnvironment:
    """An environment that gives its own rewards. Without any, its score is the reward of the step that ends the episode.

    The evaluator is then called there, so a later `evaluate` is answered with the same score.
    """

    def __init__(self, inner: Environment) -> None:
        self._inner, self._taken = inner, list[str]()
        self._score: Score | None = None
        self._reward = 0.0
        self._paths: dict[str, tuple[str, ...]] = {}
        """Actions that lead to the state of each snapshot, by its id."""

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    def reward(self) -> float:
        """Return the environment's reward; without one, the score in [0, 1] if the last step ended the episode, else 0."""
        return self._reward

    async def reset(self, task: Task) -> Observation:
        self._begin(())
        return await self._inner.reset(task)

    async def step(self, action: Action) -> Transition:
        """Carry out the step. If it ends the episode of an environment without rewards, evaluate it."""
        transition = await self._inner.step(action)
        self._taken.append(action.key)
        own, self._score = _own_reward(self._inner), None
        self._reward = own or 0.0
        if own is None and transition.terminated and self.capabilities.evaluates:
            answer = " ".join(map(str, action.args)) if self.actions.is_final(action) else None
            self._score = await self._inner.evaluate(Outcome(actions=tuple(self._taken), answer=answer))
            self._reward = self._score.value
        return transition

    async def snapshot(self) -> Snapshot:
        snapshot = await self._inner.snapshot()
        self._paths[snapshot.id] = tuple(self._taken)
        return snapshot

    async def restore(self, snapshot: Snapshot) -> Observation:
        self._begin(self._paths.get(snapshot.id, ()))
        return await self._inner.restore(snapshot)

    async def evaluate(self, outcome: Outcome) -> Score:
        return self._score or await self._inner.evaluate(outcome)

    async def close(self) -> None:
        await self._inner.close()

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the environment, such as `obstacle` or `processor`."""
        return getattr(self._inner, name)

    def _begin(self, taken: tuple[str, ...]) -> None:
        self._taken, self._reward, self._score = list(taken), 0.0, None


def with_rewards(environment: Environment) -> Environment:
    """Return the environment as one that always is a RewardSource."""
    return environment if isinstance(environment, ScoredEnvironment) else ScoredEnvironment(environment)


def _own_reward(environment: Environment) -> float | None:
    """Return the reward of the last step; None if the environment gives none."""
    try:
        return reward_of(environment)
    except UsageError:
        return None


def miniwob_pages() -> Path:
    """Return the folder of the wheel's pages. Raises UsageError if it is not installed."""
    with suppress(PackageNotFoundError):  # not by import, which would find a script of that name in the working directory first
        pages = Path(str(distribution("miniwob").locate_file("miniwob/html")))
        if pages.is_dir():
            return pages
    raise UsageError("the pages of MiniWoB++ are not installed: run `pip install 'exact-agent[miniwob]'`")
