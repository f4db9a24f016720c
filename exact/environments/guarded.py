"""Environments of any origin, held to their contract: any other error or result is an EnvironmentFailure."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, cast

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, Fork, ForkableFactory, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure, EvaluatorError, UsageError
from exact.observation import Observation
from exact.parts import Misfit, awaited, calling, expect, is_own, misfit, name_of, shown, without_result
from exact.task import Outcome, Score, Task

Note = Callable[[str], None]
"""Records a failure after which an attempt continues: of a snapshot, of a return for which there are other routes, or of a close."""


class _Odd(EnvironmentFailure):
    """A snapshot, a restore or a fork that violated the contract, unlike one that is refused."""


def guarded_factory(environments: EnvironmentFactory, note: Note) -> EnvironmentFactory:
    """Return a factory of guarded environments. It forks if the given one does."""
    notes = _Notes(note)
    return _GuardedForks(environments, notes) if isinstance(environments, ForkableFactory) else _GuardedFactory(environments, notes)


class _Notes:
    """Failures after which an attempt continues. Each of the user's own class is a warning too, once."""

    def __init__(self, note: Note) -> None:
        self._note, self._warned = note, set[str]()

    def __call__(self, part: object, error: EnvironmentFailure) -> None:
        self._note(text := str(error))
        if is_own(part) and text not in self._warned:
            self._warned.add(text)
            logging.getLogger("exact").warning("%s; the attempt goes on without it", text)


class _GuardedFactory:
    """Factory of guarded environments."""

    def __init__(self, inner: EnvironmentFactory, note: _Notes) -> None:
        self._inner, self._note = inner, note

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment."""
        stack = AsyncExitStack()
        with calling("environment.open", self._inner, EnvironmentFailure, admits=(UsageError,)):
            opened = self._inner.open(simulation=simulation)
            if not isinstance(opened, AbstractAsyncContextManager):
                raise misfit(opened, "an async context manager, such as @asynccontextmanager makes")
            inner = await stack.enter_async_context(opened)
        async with self._closing(stack, inner):
            with calling("environment.open", self._inner, EnvironmentFailure):
                if inspect.isclass(inner) or not all(callable(getattr(inner, method, None)) for method in ("reset", "step")):
                    raise misfit(inner, "an object with reset, step, actions and capabilities")
            yield GuardedEnvironment(inner, self._note)

    @asynccontextmanager
    async def _closing(self, stack: AsyncExitStack, inner: Environment) -> AsyncIterator[None]:
        """Close an environment after the block. A failure is noted: it says nothing about earlier calls."""
        try:
            yield
        finally:
            try:
                with calling("environment.close", inner, EnvironmentFailure):
                    await stack.aclose()
            except EnvironmentFailure as error:
                self._note(inner, error)

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the factory, such as `bytes`."""
        return getattr(self._inner, name)


class _GuardedForks(_GuardedFactory):
    """Forkable factory of guarded environments."""

    _inner: ForkableFactory

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[Fork]:
        """Open a fork of a snapshot."""
        stack = AsyncExitStack()
        with _noted("environment.fork", self._inner, self._note):
            inner = await stack.enter_async_context(self._inner.fork(snapshot, simulation=simulation))
            expect(inner.observation, Observation)
        async with self._closing(stack, inner):
            yield cast(Fork, GuardedEnvironment(inner, self._note))

    def has(self, snapshot: Snapshot) -> bool:
        return self._inner.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._inner.drop(snapshot)


class GuardedEnvironment:
    """An environment that raises only errors that `Environment` names, and gives only results that it guarantees."""

    def __init__(self, inner: Environment, note: _Notes) -> None:
        """Guard an environment."""
        self._inner, self._note, self.__name__ = inner, note, name_of(inner)

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    async def reset(self, task: Task) -> Observation:
        with calling("environment.reset", self._inner, EnvironmentFailure):
            seen = expect(await awaited(self._inner.reset(task)), Observation)
        self._check_properties()
        return seen

    def _check_properties(self) -> None:
        """Raise EnvironmentFailure unless the environment has a grammar of actions, and capabilities. Some have them from a reset on."""
        for name, kind in (("actions", ActionSpace), ("capabilities", Capabilities)):
            with calling(f"environment.{name}", self._inner, EnvironmentFailure):
                if not isinstance(found := getattr(self._inner, name), kind):
                    raise Misfit(f"has {shown(found)}: expected {kind.__name__}")

    async def step(self, action: Action) -> Transition:
        """Carry out one action. Raises EnvironmentFailure for a transition that has no observation and does not end the episode."""
        with calling("environment.step", self._inner, EnvironmentFailure, admits=(ActionError,)):
            came = expect(await awaited(self._inner.step(action)), Transition)
            if came.observation is None and not came.terminated:
                raise Misfit("returned neither an observation nor an end: give one, or set terminated")
        return came

    async def changes(self, ids: Collection[str] = ()) -> Transition | None:
        """Return the transition to the present state if it has changed by itself. None if not, or if the environment cannot tell."""
        if (changes := getattr(self._inner, "changes", None)) is None:
            return None
        with calling("environment.changes", self._inner, EnvironmentFailure):
            came = await awaited(changes(ids))
            return None if came is None else expect(came, Transition)

    async def snapshot(self) -> Snapshot:
        with _noted("environment.snapshot", self._inner, self._note):
            return expect(await awaited(self._inner.snapshot()), Snapshot)

    async def restore(self, snapshot: Snapshot) -> Observation:
        with _noted("environment.restore", self._inner, self._note):
            return expect(await awaited(self._inner.restore(snapshot)), Observation)

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the score. Raises EvaluatorError for an evaluator that fails with any error but an InfrastructureError."""
        with calling("environment.evaluate", self._inner, EvaluatorError):
            score = expect(await awaited(self._inner.evaluate(outcome)), Score)
            if not 0 <= score.value <= 1:  # nor NaN
                raise Misfit(f"returned the score {score.value}: expected one in [0, 1]")
            return score

    async def close(self) -> None:
        with calling("environment.close", self._inner, EnvironmentFailure):
            without_result(await awaited(self._inner.close()))

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the environment, such as `obstacle`, `observation` or `look`."""
        return getattr(self._inner, name)


@contextmanager
def _noted(what: str, part: object, notes: _Notes) -> Iterator[None]:
    """Note a call's violation of its contract: the caller continues by another way, as after a refusal."""
    try:
        with calling(what, part, _Odd):
            yield
    except _Odd as error:
        notes(part, error)
        raise
