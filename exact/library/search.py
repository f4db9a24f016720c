"""Search of any environment, without a run folder."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeGuard, cast

from exact.agents.agent import Agent
from exact.agents.base import Policy, ValueFunction
from exact.config import Config, parse
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import UsageError
from exact.library.tasks import is_of_suite
from exact.runs.runner import Runner, create, refuse_reward
from exact.scratch import scratch
from exact.search.tree import Tree
from exact.task import Task

AnyEnvironment = Environment | EnvironmentFactory | AbstractAsyncContextManager[EnvironmentFactory] | Callable[[], Environment]
"""One environment, a factory of environments or a context manager that opens one, or a function (or class) without arguments that makes an
environment."""

_START = Task(id="search", instruction="")


async def search(
    environment: AnyEnvironment,
    *,
    policy: Policy,
    value: ValueFunction,
    task: Task = _START,
    algorithm: str = "mcts",
    iterations: int = 30,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
) -> Tree:
    """Search from the start of a task and return the tree. Nothing is committed, and no file stays.

        tree = await exact.search(MyEnvironment, policy=MyPolicy(), value=MyValue(), iterations=100)
        print(tree)

    Args:
        environment: An EnvironmentFactory, or a context manager that opens one; a function or class that makes an environment; or one
            environment, which is reset and replayed and is not closed.
        policy: Proposes actions.
        value: Estimates, in [0, 1], how likely a state leads to success.
        task: What to search for. The environment's `reset` gets it.
        algorithm: Name of the search algorithm, as in `search.algorithm` of a configuration.
        iterations: Number of iterations, at least 1.
        seed: Seed of all random draws.
        settings: Further keys of the section `search` of a configuration, such as `{"k": 3, "depth": 10}`.

    Raises UsageError where an argument cannot be used, EnvironmentFailure and ModelError where no environment or model answers.
    """
    search_keys = {"iterations": iterations, **(settings or {}), "algorithm": algorithm}
    if is_environment(environment):
        search_keys["workers"] = 1
    agent = Agent(policy=policy, value=value)
    if agent.uses_reward:
        refuse_reward((task,), benchmark=is_of_suite(task))
    config = parse({"seed": seed, "search": search_keys, "reflection": {"kind": "none"}})
    async with opened_factory(environment) as environments:
        return await _searched(environments, agent, task, config)


def search_sync(environment: AnyEnvironment, **arguments: Any) -> Tree:
    """Search as `search` does, from code that is not asynchronous."""
    return asyncio.run(search(environment, **arguments))


async def _searched(environments: EnvironmentFactory, agent: Agent, task: Task, config: Config) -> Tree:
    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return nullcontext(environments)

    with scratch("search") as folder:
        run = create(folder / "run", (task,), config, benchmark=False)
        return await Runner(folder=run, config=config, open_environments=opened, build_agent=lambda *_: agent).search(task)


def is_environment(given: AnyEnvironment) -> TypeGuard[Environment]:
    """Return whether an object is an environment itself, rather than something that makes one."""
    return not inspect.isclass(given) and all(hasattr(given, name) for name in ("reset", "step", "actions"))


@asynccontextmanager
async def opened_factory(given: AnyEnvironment) -> AsyncIterator[EnvironmentFactory]:
    """Open the factory that an argument stands for. Raises UsageError for an object that is no environment and makes none."""
    if isinstance(given, AbstractAsyncContextManager) and not hasattr(given, "open"):
        async with given as environments:
            yield environments
    else:
        yield factory_of(cast(Environment | EnvironmentFactory | Callable[[], Environment], given))


def factory_of(given: Environment | EnvironmentFactory | Callable[[], Environment]) -> EnvironmentFactory:
    if inspect.isclass(given):
        return _Made(cast(Callable[[], Environment], given))
    if is_environment(given):
        return _One(given)
    if hasattr(given, "open"):
        return cast(EnvironmentFactory, given)
    if callable(given):
        return _Made(given)
    kind = type(given).__name__
    if hasattr(given, "action_space") and hasattr(given, "step"):
        raise UsageError(
            f"environment is of type {kind}, of Gymnasium: give exact.environments.adapters.gym.gymnasium_factory(ID), which runs it"
        )
    raise UsageError(f"environment is of type {kind}: give an Environment, an EnvironmentFactory, or a function that makes an Environment")


class _One:
    """Factory of one environment, which all share and nobody closes."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        yield self._environment


class _Made:
    """Factory that makes each environment by a function, and closes it."""

    def __init__(self, make: Callable[[], Environment]) -> None:
        self._make = make

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        environment = self._make()
        try:
            yield environment
        finally:
            await environment.close()
