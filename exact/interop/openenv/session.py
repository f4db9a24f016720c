"""One client's environment: episodes, one after another, with rewards, snapshots and forks."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple

from exact.environments.base import Environment, ForkableFactory, Snapshot, StateChanged
from exact.environments.reward import reward_of, with_rewards
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.interop.openenv.actions import SCREENSHOT_FORMATS, fields, read_action
from exact.interop.openenv.catalogue import Catalogue
from exact.interop.openenv.held_context import HeldContext
from exact.observation import Observation
from exact.task import Outcome, Task

MOST_SNAPSHOTS = 256
"""Snapshots that one session retains; the oldest are dropped."""

_HALF = 250
"""Characters of a long refusal that are reported, from its beginning and from its end each."""


class Shown(NamedTuple):
    """One answer to a client."""

    fields: dict[str, Any]
    """Fields of the observation but `done` and `reward`."""
    reward: float | None
    done: bool


class SavedState(NamedTuple):
    """A snapshot, and the way to it."""

    snapshot: Snapshot
    task: Task
    taken: tuple[str, ...]
    steps: int
    seen: Observation
    factory: ForkableFactory | None
    """Factory that forks the snapshot; None if its environments cannot be forked."""


class ServedSession:
    """Episodes in one environment, which is opened at the first reset."""

    def __init__(self, catalogue: Catalogue, forks: dict[str, SavedState], *, most: int, screenshot: bool) -> None:
        """Configure the session.

        forks: snapshots of all sessions by their id, from which other sessions begin. most: steps after which an episode is cut off,
        refused ones included; 0: none. screenshot: whether observations have one.
        """
        self._catalogue, self._forks, self._most, self._has_screenshots = catalogue, forks, most, screenshot
        self._screenshot = SCREENSHOT_FORMATS[0]
        self.id = secrets.token_hex(8)
        self._held: HeldContext[Any] | None = None
        self._environment: Environment | None = None
        self._kind: object = None
        self._task: Task | None = None
        self._saved: dict[str, SavedState] = {}
        self._begin((), 0, "")
        self.episode = ""
        self.is_closed = False

    def _begin(self, taken: tuple[str, ...], steps: int, goal: str) -> None:
        self._taken, self._steps, self._goal, self._done, self._total = list(taken), steps, goal, False, 0.0
        self._answer: str | None = None
        self._seen: Observation | None = None
        self._seconds = 0.0

    @property
    def state(self) -> dict[str, Any]:
        """Report of `state`."""
        task = self._task
        return {
            "episode_id": self.episode or None,
            "step_count": self._steps,
            "session": self.id,
            "benchmark": task.id.partition("/")[0] if task else "",
            "task_name": task.id.partition("/")[2].partition("?")[0] if task else "",
            "task_id": task.id if task else "",
            "goal": self._goal,
            "current_url": self._seen.url if self._seen else "",
            "max_steps": self._most or None,
            "cum_reward": self._total,
            "actions": self._environment.actions.describe() if self._environment else "",
            "fidelity": self._environment.capabilities.fidelity if self._environment else "",
        }

    async def reset(
        self, seed: object = None, task_name: object = None, episode: str | None = None, fork: str | None = None,
        screenshot_format: str = SCREENSHOT_FORMATS[0],
    ) -> Shown:  # fmt: skip
        """Begin an episode: at the start of a task, or at another session's snapshot. Raises UsageError, EnvironmentFailure.

        The arguments are a client's, and may be anything.
        """
        self._check_open()
        for name, text in {"episode_id": episode, "fork": fork}.items():
            if not isinstance(text, str | None):
                raise UsageError(f"{name} {str(text)[:80]!r} is no text: give the id as it was told")
        if screenshot_format not in SCREENSHOT_FORMATS:
            raise UsageError(f"invalid screenshot_format {str(screenshot_format)[:80]!r}: valid: {', '.join(SCREENSHOT_FORMATS)}")
        self._screenshot = screenshot_format
        if fork is not None:
            return await self._forked(fork, episode)
        task = self._catalogue.task(task_name, seed)
        factory = await self._catalogue.environments(task)
        environment = await self._opened(factory, lambda: factory.open(simulation=False))
        self._task, self.episode = task, episode or secrets.token_hex(8)
        try:
            seen = await environment.reset(task)
        except EnvironmentFailure:
            await self._drop()
            environment = await self._opened(factory, lambda: factory.open(simulation=False))
            seen = await environment.reset(task)
        self._begin((), 0, task.instruction or seen.instruction)
        self._seen = seen
        return self._shown()

    async def step(self, text: str) -> Shown:
        """Carry out one action. Raises UsageError, EnvironmentFailure.

        A refused one leaves the state, with `error` set. It counts as a step, as in BrowserGym, so that an episode ends in any case.
        """
        self._check_open()
        environment, seen = self._environment, self._seen
        if environment is None or seen is None:
            raise UsageError("no episode has begun: call reset first")
        if self._done:
            raise UsageError("the episode is over: call reset to begin another one")
        self._seconds, began, reward, refusal = 0.0, time.perf_counter(), 0.0, ""
        self._steps += 1
        try:
            action = read_action(text, environment.actions, seen.elements)
            if action is not None:
                transition = await environment.step(action)
                self._taken.append(action.key)
                if environment.actions.is_final(action):
                    self._answer = " ".join(map(str, action.args))
                self._seen, self._done = transition.observation or seen, transition.terminated
                reward = reward_of(environment)
        except ActionError as error:
            if isinstance(error, StateChanged):
                self._seen, self._done = error.came.observation or seen, error.came.terminated
            refusal = " ".join(str(error).split())
            if len(refusal) > 2 * _HALF:  # it repeats an action of any length
                refusal = f"{refusal[:_HALF]} ... {refusal[-_HALF:]}"
        except EnvironmentFailure:
            await self._drop()
            raise
        self._seconds = time.perf_counter() - began
        if self._most and self._steps >= self._most and not self._done:
            self._done = True
            if not reward and environment.capabilities.evaluates:
                reward = (await environment.evaluate(Outcome(actions=tuple(self._taken), answer=self._answer))).value
        self._total += reward
        return self._shown(reward, error=refusal, last=text)

    async def snapshot(self) -> dict[str, Any]:
        """Take a snapshot and return its id. Raises UsageError, EnvironmentFailure."""
        self._check_open()
        environment, seen, task = self._environment, self._seen, self._task
        if environment is None or seen is None or task is None or self._done:
            raise UsageError("there is no state to take a snapshot of: call reset first")
        if environment.capabilities.fidelity == "replay":
            raise UsageError("this environment takes no snapshots: return to a state by a reset and the same actions")
        snapshot = await environment.snapshot()
        factory = self._kind if isinstance(self._kind, ForkableFactory) else None
        self._forks[snapshot.id] = self._saved[snapshot.id] = SavedState(snapshot, task, tuple(self._taken), self._steps, seen, factory)
        if len(self._saved) > MOST_SNAPSHOTS:
            self._forget(next(iter(self._saved)))
        forks = factory is not None
        return {"snapshot": snapshot.id, "fidelity": snapshot.fidelity, "fingerprint": snapshot.fingerprint, "forks": forks}

    async def restore(self, id: str) -> Shown:
        """Return to a snapshot of this session. Raises UsageError, EnvironmentFailure."""
        self._check_open()
        saved = self._saved.get(id)
        if saved is None or self._environment is None:
            raise UsageError(f"this session has no snapshot {id!r}: take one, or fork that of another session")
        seen = await self._environment.restore(saved.snapshot)
        self._task = saved.task
        self._begin(saved.taken, saved.steps, saved.task.instruction or saved.seen.instruction)
        self._seen = seen
        return self._shown()

    async def close(self) -> None:
        """Close the environment and drop the snapshots. May be called twice."""
        self.is_closed = True
        for id in list(self._saved):
            self._forget(id)
        await self._drop()

    async def _forked(self, id: str, episode: str | None) -> Shown:
        saved = self._forks.get(id)
        if saved is None or saved.factory is None:
            raise UsageError(f"no snapshot {id!r} can be forked here: take one in an environment whose snapshots fork (`forks`: true)")
        factory, snapshot = saved.factory, saved.snapshot
        await self._drop()
        await self._opened(object(), lambda: factory.fork(snapshot, simulation=False))
        self._kind, self._task, self.episode = factory, saved.task, episode or secrets.token_hex(8)
        self._begin(saved.taken, saved.steps, saved.task.instruction or saved.seen.instruction)
        self._seen = saved.seen
        return self._shown()

    async def _opened(self, kind: object, open: Callable[[], AbstractAsyncContextManager[Any]]) -> Environment:
        """Return the session's environment, which is opened anew if another kind is wanted. A fork is not used again."""
        if self._environment is not None and self._kind is kind:
            return self._environment
        await self._drop()
        self._held = HeldContext(open())
        self._kind, self._environment = kind, with_rewards(await self._held.value())
        return self._environment

    async def _drop(self) -> None:
        held, self._held, self._environment, self._kind, self._seen = self._held, None, None, None, None
        if held is not None:
            await held.close()

    def _forget(self, id: str) -> None:
        saved = self._saved.pop(id)
        self._forks.pop(id, None)
        if saved.factory is not None:
            saved.factory.drop(saved.snapshot)

    def _check_open(self) -> None:
        if self.is_closed:
            raise UsageError("the session was idle for too long, and was closed: connect again")

    def _shown(self, reward: float | None = None, *, error: str = "", last: str = "") -> Shown:
        assert self._seen is not None
        found = fields(self._seen, self._goal, screenshot=self._screenshot if self._has_screenshots else "", error=error, last_action=last)
        found["metadata"] |= {
            "session": self.id,
            "task": self._task.id if self._task else "",
            "browsergym_info": {"steps": self._steps, "seconds": self._seconds},
        }
        return Shown(found, reward, self._done)
