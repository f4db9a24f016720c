"""Search of any environment, without a run folder.

Calls of the library from code that is not asynchronous.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

from exact.agents.agent import Agent
from exact.agents.base import Policy, ValueFunction
from exact.config import Config, parse
from exact.environments.base import EnvironmentFactory
from exact.environments.own import AnyEnvironment, is_environment, opened_factory
from exact.environments.tools.open import AnyTool
from exact.errors import UsageError
from exact.library.run import name_actions
from exact.library.tasks import is_of_suite
from exact.machine import scratch
from exact.parts import shown
from exact.runs.runner import Runner, create, refuse_reward
from exact.search.tree import Tree
from exact.task import Task

_START = Task(id="search", instruction="")


async def search(
    environment: AnyEnvironment,
    *,
    policy: Policy,
    value: ValueFunction,
    task: Task = _START,
    algorithm: str | None = None,
    iterations: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    tools: Sequence[AnyTool] = (),
) -> Tree:
    """Search from the start of a task and return the tree. Nothing is committed, and no file stays.

        tree = await exact.search(MyEnvironment, policy=MyPolicy(), value=MyValue(), iterations=100)
        print(tree)

    Args:
        environment: An EnvironmentFactory, or a context manager that opens one; a function or class that makes an environment; or one
            environment, which is reset and replayed and is not closed.
        policy: Proposes actions: Proposals, texts, or pairs of a text and its prior.
        value: Estimates, in [0, 1], how likely a state leads to success: an Evaluation or a number.
        task: Task of the search. The environment's `reset` gets it.
        algorithm: Name of the search algorithm, as in `search.algorithm` of a configuration. None: mcts, unless `settings` names one.
        iterations: Number of iterations, at least 1. None: 30, unless `settings` has a number.
        seed: Seed of all random draws.
        settings: Further keys of the section `search` of a configuration, such as `{"k": 3, "depth": 10}`.
        tools: Actions beside those of the environment, as for `solve`. Only those that read are called.

    Raises UsageError if an argument cannot be used, EnvironmentFailure and ModelError if no environment or model answers, and PartError if
    the policy or the value function raises or violates its contract.
    """
    if algorithm is not None and not isinstance(algorithm, str):
        raise UsageError(f"algorithm is {shown(algorithm)}: give a name, such as 'mcts', or 'module:function' of one that makes yours")
    search_keys = {"iterations": 30, "algorithm": "mcts", **_agreed(settings, algorithm=algorithm, iterations=iterations)}
    if is_environment(environment) and search_keys.setdefault("workers", 1) != 1:
        raise UsageError(f"settings has workers {search_keys['workers']!r}, and environment is one environment: give its class")
    agent = Agent(policy=policy, value=value)
    if agent.uses_reward:
        refuse_reward((task,), benchmark=is_of_suite(task))
    config = parse({"seed": seed, "search": search_keys, "reflection": {"kind": "none"}})
    async with opened_factory(environment) as environments:
        return await _searched(environments, agent, task, config, tools)


def search_sync(environment: AnyEnvironment, **arguments: Any) -> Tree:
    """Search as `search` does, from code that is not asynchronous. Raises UsageError in a running event loop."""
    return run_sync(search, environment, **arguments)


def _agreed(settings: Mapping[str, Any] | None, **arguments: object) -> dict[str, Any]:
    """Return the settings with the arguments that are given. Raises UsageError for one that settings has too, with another value."""
    found = dict(settings or {})
    for name, given in arguments.items():
        if given is not None and found.setdefault(name, given) != given:
            raise UsageError(f"{name} is {given!r}, and settings has {name} {found[name]!r}: give one of them")
    return found


async def _searched(environments: EnvironmentFactory, agent: Agent, task: Task, config: Config, tools: Sequence[AnyTool]) -> Tree:
    def opened(task: Task) -> AbstractAsyncContextManager[EnvironmentFactory]:
        return nullcontext(environments)

    with scratch("search") as folder:
        run = create(folder / "run", (task,), config, benchmark=False)
        runner = Runner(folder=run, config=config, open_environments=opened, build_agent=lambda *_: agent, tools=tools)
        tree = await runner.search(task)
        name_actions(tree, run.blobs)
        return tree


T = TypeVar("T")


def run_sync(call: Callable[..., Coroutine[Any, Any, T]], *arguments: Any, **named: Any) -> T:
    """Return the result of an asynchronous call. Raises UsageError in a running event loop, such as a notebook's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call(*arguments, **named))
    name = call.__name__
    raise UsageError(f"{name}_sync cannot be called in a running event loop, such as a notebook's: write `await exact.{name}(...)`")
