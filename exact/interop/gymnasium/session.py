"""The open environment behind a Gymnasium environment, and the episode in it."""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress

import msgspec

from exact.action import Action
from exact.benchmarks.ids import join, split
from exact.config import Config
from exact.environments.base import Environment, Transition
from exact.environments.own import AnyEnvironment, opened_factory
from exact.environments.reward import reward_of, with_rewards
from exact.errors import EnvironmentFailure
from exact.observation import Observation
from exact.task import Outcome, Score, Task

TOY = "toy/"


class GymnasiumSession:
    """Opens the environment of a task when it is first needed, and again after it broke. All methods run in one event loop."""

    def __init__(self, task: Task | str, config: Config, environments: AnyEnvironment | None) -> None:
        self._task, self._config, self._given = task, config, environments
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._opened: str = ""
        """What the environment was opened for: only a toy's depends on the seed."""
        self._taken = list[str]()
        self.task = task if isinstance(task, Task) else Task(id=task, instruction="")

    async def reset(self, seed: int) -> tuple[Environment, Observation]:
        """Begin an episode of a seed. A broken environment is opened again, once. Raises EnvironmentFailure, UsageError."""
        self.task, self._taken = self._seeded(seed), []
        with suppress(EnvironmentFailure):
            environment = await self._open()
            return environment, await environment.reset(self.task)
        await self.close()
        environment = await self._open()
        return environment, await environment.reset(self.task)

    async def step(self, action: Action) -> tuple[Transition, float]:
        """Carry out an action. Return the transition and its reward. Raises ActionError, EnvironmentFailure."""
        assert self._environment is not None
        transition = await self._environment.step(action)
        self._taken.append(action.key)
        return transition, reward_of(self._environment)

    async def score(self, action: Action) -> Score | None:
        """Return the score of the ended episode, whose last action is given; None where nothing evaluates it."""
        assert self._environment is not None
        if not self._environment.capabilities.evaluates:
            return None
        answer = " ".join(map(str, action.args)) if self._environment.actions.is_final(action) else None
        return await self._environment.evaluate(Outcome(actions=tuple(self._taken), answer=answer))

    async def close(self) -> None:
        """Close the environment with all that was opened for it. May be called twice."""
        stack, self._stack, self._environment = self._stack, AsyncExitStack(), None
        await stack.aclose()

    def _seeded(self, seed: int) -> Task:
        from exact.benchmarks import registry
        from exact.environments.toy.known import toy_task

        if isinstance(self._task, Task):
            return msgspec.structs.replace(self._task, id=join(split(self._task.id)[0], seed), seed=seed)
        if self._task.startswith(TOY):
            return msgspec.structs.replace(toy_task(split(self._task)[0].removeprefix(TOY), seed), id=join(split(self._task)[0], seed))
        [task] = registry.own_suites([self._task])
        return registry.task(join(split(task)[0], seed))

    async def _open(self) -> Environment:
        toy = isinstance(self._task, str) and self._task.startswith(TOY)
        wanted = self.task.id if toy else "any"
        if self._environment is not None and self._opened == wanted:
            return self._environment
        await self.close()
        factory = await self._stack.enter_async_context(opened_factory(self._environments(toy)))
        environment = await self._stack.enter_async_context(factory.open(simulation=False))
        self._environment, self._opened = with_rewards(environment), wanted
        return self._environment

    def _environments(self, toy: bool) -> AnyEnvironment:
        from exact.benchmarks.open import open_environments
        from exact.environments.toy.factory import ToyFactory
        from exact.environments.toy.known import toy_graph
        from exact.library.tasks import is_of_suite

        if self._given is not None:
            return self._given
        if toy:
            return ToyFactory(toy_graph(split(str(self._task))[0].removeprefix(TOY), self.task.seed))
        return open_environments(self.task, self._config, benchmark=is_of_suite(self.task))
