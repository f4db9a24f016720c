"""Environments of any origin, held to their contract: any other error or result is an EnvironmentFailure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, cast

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, Fork, ForkableFactory, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure, EvaluatorError
from exact.observation import Observation
from exact.parts import calling, expect
from exact.task import Outcome, Score, Task

Note = Callable[[str], None]
"""Records a failure after which an attempt continues: of a snapshot, of a return for which there are other routes, or of a close."""


class _Odd(EnvironmentFailure):
    """A snapshot, a restore or a fork that violated the contract, unlike one that is refused."""


def guarded_factory(environments: EnvironmentFactory, note: Note) -> EnvironmentFactory:
    """Return a factory of guarded environments. It forks if the given one does."""
    return _GuardedForks(environments, note) if isinstance(environments, ForkableFactory) else _GuardedFactory(environments, note)


class _GuardedFactory:
    """Factory of guarded environments."""

    def __init__(self, inner: EnvironmentFactory, note: Note) -> None:
        self._inner, self._note = inner, note

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment."""
        stack = AsyncExitStack()
        with calling("environment.open", EnvironmentFailure):
            inner = await stack.enter_async_context(self._inner.open(simulation=simulation))
        async with self._closing(stack):
            yield GuardedEnvironment(inner, self._note)

    @asynccontextmanager
    async def _closing(self, stack: AsyncExitStack) -> AsyncIterator[None]:
        """Close an environment after the block. A failure is noted: it says nothing about earlier calls."""
        try:
            yield
        finally:
            try:
                with calling("environment.close", EnvironmentFailure):
                    await stack.aclose()
            except EnvironmentFailure as error:
                self._note(str(error))

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
        with _noted("environment.fork", self._note):
            inner = await stack.enter_async_context(self._inner.fork(snapshot, simulation=simulation))
            expect("environment.fork", inner.observation, Observation, _Odd)
        async with self._closing(stack):
            yield cast(Fork, GuardedEnvironment(inner, self._note))

    def has(self, snapshot: Snapshot) -> bool:
        return self._inner.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._inner.drop(snapshot)


class GuardedEnvironment:
    """An environment that raises only errors that `Environment` names, and gives only results that it guarantees."""

    def __init__(self, inner: Environment, note: Note) -> None:
        """Guard an environment."""
        self._inner, self._note = inner, note

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    async def reset(self, task: Task) -> Observation:
        with calling("environment.reset", EnvironmentFailure):
            return expect("environment.reset", await self._inner.reset(task), Observation, EnvironmentFailure)

    async def step(self, action: Action) -> Transition:
        """Carry out one action. Raises EnvironmentFailure for a transition that has no observation and does not end the episode."""
        with calling("environment.step", EnvironmentFailure, admits=(ActionError,)):
            came = expect("environment.step", await self._inner.step(action), Transition, EnvironmentFailure)
        if came.observation is None and not came.terminated:
            raise EnvironmentFailure("environment.step: neither an observation nor an end came: give one, or set terminated")
        return came

    async def changes(self, ids: Collection[str] = ()) -> Transition | None:
        """Return the transition to the present state if it has changed by itself. None if not, or if the environment cannot tell."""
        if (changes := getattr(self._inner, "changes", None)) is None:
            return None
        with calling("environment.changes", EnvironmentFailure):
            came = await changes(ids)
            return None if came is None else expect("environment.changes", came, Transition, EnvironmentFailure)

    async def snapshot(self) -> Snapshot:
        with _noted("environment.snapshot", self._note):
            return expect("environment.snapshot", await self._inner.snapshot(), Snapshot, _Odd)

    async def restore(self, snapshot: Snapshot) -> Observation:
        with _noted("environment.restore", self._note):
            return expect("environment.restore", await self._inner.restore(snapshot), Observation, _Odd)

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the score. Raises EvaluatorError for an evaluator that fails with any error but an InfrastructureError."""
        with calling("environment.evaluate", EvaluatorError):
            return expect("environment.evaluate", await self._inner.evaluate(outcome), Score, EvaluatorError)

    async def close(self) -> None:
        with calling("environment.close", EnvironmentFailure):
            await self._inner.close()

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the environment, such as `obstacle`, `observation` or `look`."""
        return getattr(self._inner, name)


@contextmanager
def _noted(what: str, note: Note) -> Iterator[None]:
    """Note a call's violation of its contract: the caller continues by another way, as after a refusal."""
    try:
        with calling(what, _Odd):
            yield
    except _Odd as error:
        note(str(error))
        raise
