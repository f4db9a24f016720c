"""Bring a speculative world to a state, and check that it is that state.

First form: a world that stands there already, else reset and replay. Every state on the way is compared by fingerprint; a
world that drifted is reported, never acted in. A healthy world that went elsewhere after an action, every time it was tried,
has *diverged*: the action has another outcome.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Literal, NamedTuple

import msgspec

from exact.action import Action
from exact.environments.base import Effect, Environment, Transition, Worlds
from exact.errors import ActionError
from exact.task import Task


class Waypoint(msgspec.Struct, frozen=True):
    """A state on a path: the action that leads to it (None for the start), and its fingerprint (empty where the episode ended)."""

    action: Action | None
    fingerprint: str


class Divergence(NamedTuple):
    """Where a path was left by a healthy world."""

    waypoint: int
    """Index of the one that was not reached."""
    transition: Transition
    """What its action led to instead."""

    @property
    def fingerprint(self) -> str:
        """Of the state that came; empty where the episode ended."""
        return self.transition.observation.fingerprint if self.transition.observation else ""


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """How a world got to a state."""

    route: Literal["there", "replay"]
    verdict: Literal["exact", "drifted", "diverged"]
    transitions: int = 0
    resets: int = 0
    effects: tuple[Effect, ...] = ()
    reason: str = ""
    divergence: Divergence | None = None
    """Where the verdict is `diverged`."""


class Standing(NamedTuple):
    """An open world and the path to the state it is in."""

    stack: AsyncExitStack
    environment: Environment
    path: tuple[Waypoint, ...]


class _Try(NamedTuple):
    """What one replay came to. Without a reason it arrived."""

    reason: str = ""
    divergence: Divergence | None = None


class Place:
    """A speculative world and where it stands. Opened when first needed, opened anew when it broke. One call at a time."""

    tries = 2
    """Replays before a drift, or in a deterministic world a divergence, is believed."""

    def __init__(self, worlds: Worlds, task: Task) -> None:
        self._worlds, self._task = worlds, task
        self._stack = AsyncExitStack()
        self._environment: Environment | None = None
        self._path: tuple[Waypoint, ...] | None = None
        self._steps = 0

    @property
    def opened(self) -> bool:
        """Whether it has a world now."""
        return self._environment is not None

    def stands_at(self, path: Sequence[Waypoint]) -> bool:
        """Whether the world is at the end of `path` now, so that arriving costs nothing."""
        return self._path == tuple(path)

    def count(self) -> int:
        """Steps taken since they were counted last, those that broke the world included."""
        steps, self._steps = self._steps, 0
        return steps

    async def arrive(self, path: Sequence[Waypoint], *, again: Callable[[], bool] = lambda: True) -> Arrival:
        """Stand at the end of `path`, which begins with the task's start. Raises EnvironmentError_.

        again: whether a replay that did not arrive may be followed by another; asked before each.
        """
        if self.stands_at(path):
            return Arrival(route="there", verdict="exact")
        before, effects, came = self._steps, list[Effect](), list[_Try]()
        while not came or (len(came) < self.tries and await self._doubts(came[-1]) and again()):
            came.append(await self._replay(path, effects))
        last, steps, resets = came[-1], self._steps - before, len(came)
        if not last.reason:
            self._path = tuple(path)
            return Arrival(route="replay", verdict="exact", transitions=steps, resets=resets, effects=tuple(effects))
        divergence = last.divergence if await self._believes(came) else None
        verdict: Literal["drifted", "diverged"] = "diverged" if divergence else "drifted"
        return Arrival(
            route="replay",
            verdict=verdict,
            transitions=steps,
            resets=resets,
            effects=tuple(effects),
            reason=last.reason,
            divergence=divergence,
        )

    async def act(self, action: Action) -> Transition:
        """Take one step from where the world stands. Raises ActionError (the world stays), EnvironmentError_ (it is gone)."""
        environment = await self._open()
        path, self._path = self._path, None
        try:
            self._steps += 1
            transition = await environment.step(action)
        except ActionError:
            self._path = path
            raise
        except BaseException:  # broken, or cancelled in the middle of a step: nobody knows what state it is in
            await self.close()
            raise
        if path is not None:
            observation = transition.observation
            self._path = (*path, Waypoint(action, observation.fingerprint if observation and not transition.terminated else ""))
        return transition

    def exchange(self, other: Standing) -> Standing:
        """Give the world away, with where it stands, for another. Only while it stands somewhere."""
        assert self._environment is not None and self._path is not None, "a world that stands nowhere is not given away"
        mine = Standing(self._stack, self._environment, self._path)
        self._stack, self._environment, self._path = other
        return mine

    async def close(self) -> None:
        """Let the world go. The next use opens another."""
        self._environment, self._path = None, None
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def _open(self) -> Environment:
        if self._environment is None:
            self._environment = await self._stack.enter_async_context(self._worlds.open(speculative=True))
        return self._environment

    async def _doubts(self, came: _Try) -> bool:
        """Whether a replay is worth another: it did not arrive, in a world that should have."""
        return bool(came.reason) and not (came.divergence and not (await self._open()).capabilities.deterministic)

    async def _believes(self, came: Sequence[_Try]) -> bool:
        """Whether replays that did not arrive show another outcome: the same each time, or a world known to vary."""
        last = came[-1].divergence
        if last is None:
            return False
        if not (await self._open()).capabilities.deterministic:
            return True
        ways = {(each.divergence.waypoint, each.divergence.fingerprint) if each.divergence else None for each in came}
        return len(came) == self.tries and len(ways) == 1

    async def _replay(self, path: Sequence[Waypoint], effects: list[Effect]) -> _Try:
        """One reset and walk down the path; why it did not arrive, if it did not."""
        environment = await self._open()
        self._path = None
        try:
            return await self._walk(environment, path, effects)
        except ActionError as error:
            return _Try(f"an action on the way was refused: {error}")
        except BaseException:
            await self.close()
            raise

    async def _walk(self, environment: Environment, path: Sequence[Waypoint], effects: list[Effect]) -> _Try:
        if (await environment.reset(self._task)).fingerprint != path[0].fingerprint:
            return _Try("another state after reset")
        for index, waypoint in enumerate(path[1:], 1):
            assert waypoint.action is not None
            self._steps += 1
            transition = await environment.step(waypoint.action)
            effects.extend(transition.effects)
            divergence = Divergence(index, transition)
            if divergence.fingerprint != waypoint.fingerprint:
                came = "another state" if transition.observation else "the episode ended"
                return _Try(f"{came} after {waypoint.action}", divergence)
        return _Try()
