"""Environments in which an agent takes its own steps back, without a search.

Two actions come on top of the environment's own: `step_back` and `restart`. They return to an earlier state by a snapshot if the
environment gives one, else by a reset and the actions that led there. Writes outside of an isolated environment cannot be taken back, so
such a step is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import msgspec

from exact.action import Action, ActionSpace, Verb
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, ForkableFactory, SideEffect, Snapshot, Transition
from exact.errors import ActionError, EnvironmentFailure
from exact.observation import Observation
from exact.parts import name_of
from exact.task import Outcome, Score, Task

STEP_BACK = Verb(name="step_back", help="return to the state before your last action, and undo that action")
RESTART = Verb(name="restart", help="return to the start of the task, and undo all actions")
ELSEWHERE = "the way back led to another state than before: look at where you are"
"""Message to an agent when a state could not be reached again."""


@dataclass(slots=True)
class _Visited:
    """A state on the path from the task's start to the present one."""

    action: Action | None
    """Action that led to it. None for the start, and for a person's actions."""
    fingerprint: str
    wrote: bool = False
    """Whether the action wrote."""
    snapshot: Snapshot | None = None


class BacktrackingFactory:
    """Factory of environments whose agent may step back."""

    def __init__(self, inner: EnvironmentFactory) -> None:
        """Wrap a factory."""
        self._inner = inner

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment."""
        async with self._inner.open(simulation=simulation) as environment:
            yield BacktrackingEnvironment(environment, self._inner if isinstance(self._inner, ForkableFactory) else None)


class BacktrackingEnvironment:
    """An environment with the actions `step_back` and `restart`."""

    def __init__(self, inner: Environment, snapshots: ForkableFactory | None = None) -> None:
        """Wrap an environment. `snapshots`: the factory that stores its snapshots, if it has one."""
        self._inner, self._snapshots, self.__name__ = inner, snapshots, name_of(inner)
        self._task: Task | None = None
        self._path: list[_Visited] = []

    @property
    def capabilities(self) -> Capabilities:
        """Those of the environment, which keeps its snapshots for itself."""
        return msgspec.structs.replace(self._inner.capabilities, fidelity="replay")

    @property
    def actions(self) -> ActionSpace:
        return ActionSpace((*self._inner.actions.verbs.values(), STEP_BACK, RESTART))

    async def reset(self, task: Task) -> Observation:
        self._forget(0)
        observation = await self._inner.reset(task)
        self._task, self._path = task, [_Visited(None, observation.fingerprint)]
        return observation

    async def step(self, action: Action) -> Transition:
        """Carry out one action, or return to an earlier state. Raises ActionError, EnvironmentFailure."""
        if action.name in (STEP_BACK.name, RESTART.name):
            if len(self._path) < 2:
                raise ActionError("this is the start of the task: there is nothing to step back from")
            return await self._return_to(len(self._path) - 2 if action.name == STEP_BACK.name else 0)
        await self._keep()
        transition = await self._inner.step(action)
        self._add(action, transition)
        return transition

    async def look(self) -> Transition:
        """Observe the state after a person acted in the environment themselves. Their actions cannot be repeated."""
        transition: Transition = await self._inner.look()  # type: ignore[attr-defined]
        self._add(None, transition)
        return transition

    async def snapshot(self) -> Snapshot:
        raise EnvironmentFailure("an environment whose agent steps back gives no snapshots: its fidelity is replay")

    async def restore(self, snapshot: Snapshot) -> Observation:
        raise EnvironmentFailure("an environment whose agent steps back gives no snapshots: its fidelity is replay")

    async def evaluate(self, outcome: Outcome) -> Score:
        return await self._inner.evaluate(outcome)

    async def close(self) -> None:
        self._forget(0)
        await self._inner.close()

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the environment, such as `attend` or `processor`."""
        return getattr(self._inner, name)

    def _add(self, action: Action | None, transition: Transition) -> None:
        wrote = any(effect.is_write for effect in transition.effects)
        fingerprint = transition.observation.fingerprint if transition.observation else ""
        self._path.append(_Visited(action, fingerprint, wrote))

    async def _keep(self) -> None:
        """Take a snapshot of the present state, if that is possible."""
        here = self._path[-1]
        if here.snapshot is None and self._inner.capabilities.fidelity != "replay" and not getattr(self._inner, "obstacle", ""):
            with suppress(EnvironmentFailure):  # refused: the environment itself still works
                here.snapshot = await self._inner.snapshot()

    async def _return_to(self, place: int) -> Transition:
        """Return to a state of the path. Raises ActionError if something that the steps since have written would stay."""
        there, wrote, isolated = self._path[place], any(each.wrote for each in self._path[place + 1 :]), self._inner.capabilities.isolated
        if wrote and not isolated:
            raise ActionError("a step since then wrote outside, which cannot be taken back: go on from here")
        if (observation := await self._restored(there, wrote)) is not None:
            self._forget(place + 1)
            return Transition(observation=observation)
        way = self._path[1 : place + 1]
        if any(visited.action is None or (visited.wrote and not isolated) for visited in way):
            raise ActionError("the way back would repeat what cannot be repeated: go on from here")
        return await self._replay([visited.action for visited in way if visited.action], there)

    async def _restored(self, there: _Visited, wrote: bool) -> Observation | None:
        """Restore a state's snapshot and return the observation. None if there is none, or if that failed.

        `wrote`: whether a step since wrote, which only a snapshot of the server too undoes.
        """
        if there.snapshot is None or (wrote and there.snapshot.fidelity != "full"):
            return None
        if self._snapshots is not None and not self._snapshots.has(there.snapshot):
            return None
        with suppress(EnvironmentFailure):
            return await self._inner.restore(there.snapshot)
        return None

    async def _replay(self, way: list[Action], there: _Visited) -> Transition:
        """Come to a state by a reset and the actions that led to it. Report it if they lead elsewhere."""
        assert self._task is not None
        came = Transition(observation=await self.reset(self._task))
        effects = list[SideEffect]()
        try:
            for action in way:
                came = await self._inner.step(action)
                self._add(action, came)
                effects += came.effects
        except ActionError as error:
            return msgspec.structs.replace(came, effects=tuple(effects), info={"refused": f"{ELSEWHERE}: {error}"})
        info = {} if self._path[-1].fingerprint == there.fingerprint else {"refused": ELSEWHERE}
        return msgspec.structs.replace(came, effects=tuple(effects), info=info)

    def _forget(self, place: int) -> None:
        """Drop the states of the path from a place on, with their snapshots."""
        for visited in self._path[place:]:
            if visited.snapshot is not None and self._snapshots is not None:
                self._snapshots.drop(visited.snapshot)
        del self._path[place:]
