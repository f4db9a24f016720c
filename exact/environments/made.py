"""Factories of environments that a user gives as an object, a class or a function."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeGuard, cast

from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import UsageError

AnyEnvironment = Environment | EnvironmentFactory | AbstractAsyncContextManager[EnvironmentFactory] | Callable[[], Environment]
"""One environment, a factory of environments or a context manager that opens one, or a function (or class) without arguments that makes an
environment."""


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
    """Return the factory that an object, a class or a function stands for. Raises UsageError."""
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
            if close := getattr(environment, "close", None):  # a small environment of the user's own may have none
                await close()
