"""Bring a speculative world to a state, and check that it is that state.

First form: a world that stands there already, else reset and replay. Every state on the way is compared by fingerprint; a
world that drifted is reported, never acted in.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Literal

import msgspec

from exact.action import Action
from exact.environments.base import Effect, Environment, Transition, Worlds
from exact.errors import ActionError, EnvironmentError_
from exact.task import Task


class Waypoint(msgspec.Struct, frozen=True):
    """A state on a path: the action that leads to it (None for the start), and its fingerprint."""

    action: Action | None
    fingerprint: str


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How a world got to a state."""

    route: Literal["there", "replay"]
    verdict: Literal["exact", "drifted"]
    transitions: int = 0
    resets: int = 0
    effects: tuple[Effect, ...] = ()
    reason: str = ""


class Place:
    """A speculative world and where it stands. Opened when first needed, opened anew when it broke."""

    tries = 2
    """Replays before a drift is believed."""

    def __init__(self, worlds: Worlds, task: Task) -> None:
        self._worlds, self._task = worlds, task
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._path: tuple[Waypoint, ...] | None = None

    def stands_at(self, path: Sequence[Waypoint]) -> bool:
        """Whether the world is at the end of `path` now, so that arriving costs nothing."""
        return self._path == tuple(path)

    async def arrive(self, path: Sequence[Waypoint]) -> Arrival:
        """Stand at the end of `path`, which begins with the task's start. Raises EnvironmentError_."""
        if self.stands_at(path):
            return Arrival(route="there", verdict="exact")
        steps, resets, effects, reason = 0, 0, list[Effect](), ""
        for _ in range(self.tries):
            resets += 1
            taken, reason = await self._replay(path, effects)
            steps += taken
            if not reason:
                self._path = tuple(path)
                return Arrival(route="replay", verdict="exact", transitions=steps, resets=resets, effects=tuple(effects))
        return Arrival(route="replay", verdict="drifted", transitions=steps, resets=resets, effects=tuple(effects), reason=reason)

    async def act(self, action: Action) -> Transition:
        """Take one step from where the world stands. Raises ActionError (the world stays), EnvironmentError_ (it is gone)."""
        environment = await self._open()
        path, self._path = self._path, None
        try:
            transition = await environment.step(action)
        except ActionError:
            self._path = path
            raise
        except EnvironmentError_:
            await self.close()
            raise
        if path is not None and transition.observation is not None and not transition.terminated:
            self._path = (*path, Waypoint(action, transition.observation.fingerprint))
        return transition

    async def close(self) -> None:
        """Let the world go. The next use opens another."""
        self._environment, self._path = None, None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _open(self) -> Environment:
        if self._environment is None:
            self._environment = await self._stack.enter_async_context(self._worlds.open(speculative=True))
        return self._environment

    async def _replay(self, path: Sequence[Waypoint], effects: list[Effect]) -> tuple[int, str]:
        """Steps taken, and why the world is not where it should be (empty: it is)."""
        environment, steps = await self._open(), 0
        self._path = None
        try:
            observation = await environment.reset(self._task)
            for waypoint in path:
                if waypoint.action is not None:
                    steps += 1
                    transition = await environment.step(waypoint.action)
                    effects.extend(transition.effects)
                    if transition.observation is None:
                        return steps, f"the episode ended at {waypoint.action}"
                    observation = transition.observation
                if observation.fingerprint != waypoint.fingerprint:
                    return steps, f"another state after {waypoint.action}" if waypoint.action else "another state after reset"
        except ActionError as error:
            return steps, f"an action on the way was refused: {error}"
        except EnvironmentError_:
            await self.close()
            raise
        return steps, ""
