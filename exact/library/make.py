"""One environment of a task, to act in by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from exact.action import Action, ActionSpace
from exact.benchmarks.open import open_environments
from exact.config import Config
from exact.environments.base import Capabilities, Environment, Snapshot, Transition
from exact.environments.tools.environment import tools_factory
from exact.environments.tools.open import AnyTool, opened_tools, with_tool_names
from exact.library.tasks import AnyTask, is_of_suite, task_of
from exact.observation import Observation
from exact.runs.secrets import known_secrets
from exact.runs.tools import secret_check
from exact.secrecy.scrubber import Scrubber
from exact.task import Outcome, Score, Task


class TaskEnvironment:
    """An environment with its task. It takes actions as texts, and remembers them for its evaluation."""

    def __init__(self, environment: Environment, task: Task) -> None:
        self._environment, self.task = environment, task
        self._taken: list[str] = []
        self._answer: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """Properties of the environment."""
        return self._environment.capabilities

    @property
    def actions(self) -> ActionSpace:
        """Grammar of the environment's actions."""
        return self._environment.actions

    async def reset(self, task: Task | None = None) -> Observation:
        """Bring the environment to the start of its task, or of another one, and return the first observation."""
        self.task, self._taken, self._answer = task or self.task, [], None
        return await self._environment.reset(self.task)

    async def step(self, action: Action | str) -> Transition:
        """Carry out an action, which may be a text such as `click [3]`.

        Raises ActionError, EnvironmentFailure, and StateChanged with the present state if the state had changed by itself.
        """
        chosen = self.actions.parse(action) if isinstance(action, str) else action
        transition = await self._environment.step(chosen)
        self._taken.append(chosen.key)
        if self.actions.is_final(chosen):
            self._answer = str(chosen.args[0]) if chosen.args else ""
        return transition

    async def snapshot(self) -> Snapshot:
        """Take a snapshot of the present state, if the capabilities include snapshots."""
        return await self._environment.snapshot()

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to the state of a snapshot."""
        return await self._environment.restore(snapshot)

    async def evaluate(self, outcome: Outcome | None = None) -> Score:
        """Return the score of an outcome; by default that of the actions since the last reset."""
        return await self._environment.evaluate(outcome or Outcome(actions=tuple(self._taken), answer=self._answer))

    async def close(self) -> None:
        """Close the environment."""
        await self._environment.close()


@asynccontextmanager
async def make(
    task: AnyTask, *, config: Config | None = None, simulation: bool = False, tools: Sequence[AnyTool] = ()
) -> AsyncIterator[TaskEnvironment]:
    """Open the environment of a task, with its servers and browser, for an `async with` block.

        async with exact.make("miniwob/click-test") as environment:
            observation = await environment.reset()
            transition = await environment.step("click [1]")
            score = await environment.evaluate()

    Args:
        task: A Task, or the id of a benchmark's task.
        config: Configuration of the browser and the sandbox.
        simulation: Whether writes are blocked, as in a search, unless the environment is isolated.
        tools: Actions beside those of the environment, as for `solve`.

    Raises UsageError if the task cannot be used here, EnvironmentFailure if the environment does not start.
    """
    chosen, settings = task_of(task), with_tool_names(config or Config(), tools)
    async with (
        opened_tools(settings.tools, tools) as opened,
        open_environments(chosen, settings, benchmark=is_of_suite(chosen)) as environments,
        tools_factory(environments, opened, secrets=secret_check(Scrubber(known_secrets((chosen,), settings) if opened else ()))).open(
            simulation=simulation
        ) as environment,
    ):
        yield TaskEnvironment(environment, chosen)
