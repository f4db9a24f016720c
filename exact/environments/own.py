"""Users' environments by name: `module:factory`, `file.py:factory`, or an entry point of the group `exact.environments`.

Factories of environments that a user gives as an object, a class or a function.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeGuard, cast

import msgspec

from exact.action import ActionSpace
from exact.config import Strict
from exact.environments.base import Environment, EnvironmentFactory
from exact.errors import EnvironmentFailure, ExactError, UsageError
from exact.parts import awaited, calling, name_of, without_result
from exact.plugins import attribute, is_plugin
from exact.task import Task

GROUP = "exact.environments"
"""Group of entry points. The object is a callable without arguments, as for `module:factory`."""


ENVIRONMENT = "environment"
"""Key of a task's private part: the user's environment in which it is attempted, as JSON of an OwnEnvironment."""


class OwnEnvironment(Strict, frozen=True, kw_only=True):
    """Environment that a task names: `environment: {kind: mine.py:Make, options: {size: 3}}`."""

    kind: str
    """`module:factory`, `file.py:factory`, or the name of an entry point."""
    options: dict[str, Any] = {}
    """Keyword arguments with which it is called."""

    @classmethod
    def read(cls, given: object, folder: Path) -> OwnEnvironment:
        """Return the content of a file, with an absolute path. Raises UsageError.

        Args:
            given: The name alone, or a mapping of `kind` and `options`.
            folder: Folder that the path is relative to.
        """
        try:
            found = msgspec.convert({"kind": given} if isinstance(given, str) else given, cls)
        except msgspec.ValidationError as error:
            raise UsageError(f"environment: {error}: write {{kind: mine.py:Make}}") from error
        place, _, name = found.kind.rpartition(":")
        found = msgspec.structs.replace(found, kind=f"{(folder / place).resolve()}:{name}") if place.endswith(".py") else found
        attribute(ENVIRONMENT, found.kind, GROUP)
        return found


def own_environment(task: Task) -> tuple[str, str, dict[str, Any]] | None:
    """Return the arguments of `own_environments` for a task that names its environment; None for any other. Raises UsageError."""
    if not (text := task.private.get(ENVIRONMENT)):
        return None
    try:
        found = msgspec.json.decode(str(text), type=OwnEnvironment)
    except msgspec.MsgspecError as error:
        raise UsageError(f"invalid environment in task {task.id}: {error}") from error
    return ENVIRONMENT, found.kind, found.options


def check_own(task: Task) -> bool:
    """Return whether a task names a user's environment. Raises UsageError if it is not there."""
    if found := own_environment(task):
        attribute(found[0], found[1], GROUP)
    return found is not None


def is_own(name: str) -> bool:
    """Return whether a name stands for a user's environment, and not for a suite's task."""
    return is_plugin(name) or name in {entry.name for entry in entry_points(group=GROUP)}


@asynccontextmanager
async def own_environments(key: str, name: str, options: Mapping[str, Any] | None = None) -> AsyncIterator[EnvironmentFactory]:
    """Open the factory that a name stands for.

    The named object is a class or function, which is called with `options`. It gives an EnvironmentFactory or an async context manager of
    one, an Environment, or a plain object with `reset`, `step` and `actions`, which then runs in a separate process. A function may be
    `async def`.

    Args:
        key: The key that named it, for errors.
        name: `module:factory`, found in the current folder too, `file.py:factory`, or the name of an entry point.
        options: Keyword arguments. None: there are none.

    Raises UsageError if there is no such object, or it makes something else.
    """
    given = dict(options or {})
    make = partial(attribute(key, name, GROUP), **given)
    made = await _called(name, make)
    if isinstance(made, AbstractAsyncContextManager) and not hasattr(made, "open"):
        async with made as environments:
            yield environments
    elif callable(getattr(made, "open", None)):
        yield made
    elif _is_environment(made):
        await _closed(made)
        yield _MadeAnew(name, make)
    elif all(hasattr(made, method) for method in ("reset", "step", "actions")):
        yield _guests(name, given)
    else:
        what = f"is {type(made).__name__}, and not" if inspect.isclass(make.func) else f"gives {_article(made)}, and not"
        raise UsageError(
            f"{key}: {name} {what} an EnvironmentFactory, an Environment, or an object with reset, step and actions: "
            "see docs/environments.md"
        )


def _article(made: object) -> str:
    kind = type(made).__name__
    return "nothing" if made is None else f"an {kind}" if kind[0].lower() in "aeiou" else f"a {kind}"


def _is_environment(made: object) -> bool:
    return isinstance(getattr(made, "actions", None), ActionSpace) and inspect.iscoroutinefunction(getattr(made, "step", None))


async def _called(name: str, make: partial[Any]) -> Any:
    """Return the result of a function. Its errors become a UsageError, except ours."""
    try:
        made = make()
        return await made if inspect.isawaitable(made) else made
    except ExactError:
        raise
    except Exception as error:
        raise UsageError(f"{name} cannot be called{_with(make)}: {type(error).__name__}: {error}") from error


def _with(make: partial[Any]) -> str:
    return f" with {', '.join(make.keywords)}" if make.keywords else " without arguments"


async def _closed(made: Environment) -> None:
    if callable(getattr(made, "close", None)):
        await made.close()


class _MadeAnew:
    """Factory that makes each environment by a function that may be `async def`."""

    def __init__(self, name: str, make: partial[Any]) -> None:
        self._name, self._make = name, make

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        made = await _called(self._name, self._make)
        async with factory_of(lambda: made).open(simulation=simulation) as environment:
            yield environment


def _guests(name: str, options: dict[str, Any]) -> EnvironmentFactory:
    """Return a factory of plain objects, each in a separate process."""
    from exact.environments.process.worker import EnvironmentSpec, WorkerFactory

    target = next((entry.value for entry in entry_points(group=GROUP) if entry.name == name), name)
    place, _, attribute = target.rpartition(":")
    if place.endswith(".py"):
        target = f"{Path(place).absolute()}:{attribute}"
    return WorkerFactory(
        EnvironmentSpec(target, options, python=Path(sys.executable), paths=(Path.cwd(), *map(Path, filter(None, sys.path))))
    )


MakeEnvironment = Callable[[], Environment | Awaitable[Environment]]
"""A class or function without arguments that makes an environment. The function may be `async def`."""
AnyEnvironment = Environment | EnvironmentFactory | AbstractAsyncContextManager[EnvironmentFactory] | MakeEnvironment
"""One environment, a factory of environments or a context manager that opens one, or what makes an environment."""


def is_environment(given: AnyEnvironment) -> TypeGuard[Environment]:
    """Return whether an object is an environment itself, rather than something that makes one."""
    return not inspect.isclass(given) and all(hasattr(given, name) for name in ("reset", "step", "actions"))


def check_environment(given: AnyEnvironment) -> None:
    """Raise UsageError for an object from which no environments can be made, such as one environment."""
    if is_environment(given):
        raise UsageError(
            "environments is one environment, but an attempt needs a live one and others to search: give its class or a factory"
        )
    if not isinstance(given, AbstractAsyncContextManager):
        factory_of(given)


@asynccontextmanager
async def opened_factory(given: AnyEnvironment) -> AsyncIterator[EnvironmentFactory]:
    """Open the factory that an argument stands for. Raises UsageError for an object that neither is an environment nor makes one."""
    if isinstance(given, AbstractAsyncContextManager) and not hasattr(given, "open"):
        async with given as environments:
            yield environments
    else:
        yield factory_of(cast(Environment | EnvironmentFactory | MakeEnvironment, given))


def factory_of(given: Environment | EnvironmentFactory | MakeEnvironment) -> EnvironmentFactory:
    """Return the factory that an object, a class or a function stands for. Raises UsageError."""
    if inspect.isclass(given):
        _check_class(given)
        return _Made(cast(MakeEnvironment, given))
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
    lacking = [name for name in ("reset", "step", "actions") if not hasattr(given, name)]
    without = f", which has no {lacking[0]}" if len(lacking) < 3 else ""
    raise UsageError(
        f"environment is of type {kind}{without}: give an Environment, an EnvironmentFactory, or a function that makes an Environment"
    )


def _check_class(given: type) -> None:
    """Raise UsageError for a class whose instances cannot be environments."""
    lacking = [name for name in ("reset", "step") if not hasattr(given, name)]
    if not lacking or hasattr(given, "__getattr__"):
        return
    name = given.__name__
    if hasattr(given, "open"):
        raise UsageError(f"environment is the class {name} of a factory: give an instance of it, such as {name}()")
    raise UsageError(f"environment is the class {name}, which has no {lacking[0]}: give a class of environments")


class _One:
    """Factory of one environment, which all share and which is never closed."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        yield self._environment


class _Made:
    """Factory that makes each environment by a function, and closes it."""

    def __init__(self, make: MakeEnvironment) -> None:
        self._make, self.__name__ = make, name_of(make)

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        made = self._make()
        environment = await made if inspect.isawaitable(made) else made
        try:
            yield environment
        finally:
            if close := getattr(environment, "close", None):  # a user's small environment may have none
                with calling("environment.close", environment, EnvironmentFailure):
                    without_result(await awaited(close()))
