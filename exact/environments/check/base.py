"""The parts of a check: one guarantee of the environment contract, tried on a real environment.

Actions that the user gives to a check, for environments whose elements do not show the possible actions.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TypeVar

import msgspec

from exact.action import Action, ActionSpace
from exact.environments.base import Environment, EnvironmentFactory, Fork, ForkableFactory, Snapshot, Transition
from exact.environments.browser.act.grammar import resolve_names
from exact.errors import ActionError, ExactError, UsageError
from exact.observation import Observation
from exact.task import Task

Propose = Callable[[Observation, ActionSpace], Sequence[Action]]
"""Function that returns actions to try in a state, likely ones first."""

Taken = tuple[Action, Observation]
"""Action, and the state that it led to."""

TRIES = 6
"""Number of walks begun if the first action may end the episode."""

LIMIT = 30.0
"""Seconds after which a call counts as hung, before an environment has said how long its calls may take."""

_WALK = 0.2
"""Share of a check's time after which a walk stops: it is repeated afterwards, in other environments too."""

T = TypeVar("T")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one check."""

    name: str
    passed: bool
    detail: str
    seconds: float = 0.0
    skipped: bool = False


@dataclass
class StepTally:
    """Count of the steps that were tried in all checks. If none was accepted, no guarantee was really tried."""

    tried: int = 0
    accepted: int = 0
    refusal: str = ""
    """Text of the last refusal."""


@dataclass
class Stated:
    """The environments' statements about themselves."""

    call_seconds: float = LIMIT
    """`Capabilities.call_seconds` of the environment that was opened last."""


class Broken(ExactError):
    """Broken guarantee: the text describes the finding."""


@dataclass(frozen=True)
class Subject:
    """Environment under test, and how hard to try."""

    environments: EnvironmentFactory
    task: Task
    propose: Propose
    limit: float | None
    """Maximum seconds of one call. None: as the environments state."""
    depth: int
    """Depth of the deepest state that is returned to."""
    steps: int
    """Actions of a walk."""
    ways: int
    """Continuations compared before and after a restore."""
    cycles: int
    """Environments opened and closed in the search for leaks."""
    seed: int = 0
    seconds: float = math.inf
    """Seconds after which a check does no more than its minimum: three elements, one depth, walks of two actions, four environments."""
    began: float = 0.0
    """Time at which the present check began."""
    now: Callable[[], float] = time.monotonic
    ends: set[tuple[str, str]] = field(default_factory=set)
    """(fingerprint, action) pairs that ended an episode: later walks avoid them."""
    tally: StepTally = field(default_factory=StepTally)
    """Steps of all checks together."""
    stated: Stated = field(default_factory=Stated)

    def late(self, part: float = 1.0) -> bool:
        """Return whether that share of the present check's time is over."""
        return self.now() - self.began > part * self.seconds

    @asynccontextmanager
    async def environment(self) -> AsyncIterator[Environment]:
        """Open a simulation environment at the task's start. Opening and closing are limited in time too."""
        opened = self.environments.open(simulation=True)
        environment = await self.call("open", opened.__aenter__())
        self.stated.call_seconds = environment.capabilities.call_seconds
        try:
            yield environment
        finally:
            await self.call("close", opened.__aexit__(None, None, None))

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot) -> AsyncIterator[Fork]:
        """Open a fork of a snapshot, if the environments can fork."""
        assert isinstance(self.environments, ForkableFactory)
        opened = self.environments.fork(snapshot, simulation=True)
        forked = await self.call("fork", opened.__aenter__())
        try:
            yield forked
        finally:
            await self.call("close", opened.__aexit__(None, None, None))

    async def call(self, what: str, call: Awaitable[T]) -> T:
        """Await one call to the environment. Raises Broken if it hangs."""
        limit = self.stated.call_seconds if self.limit is None else self.limit
        try:
            async with asyncio.timeout(limit):
                return await call
        except TimeoutError:
            way = "give it a time-out of its own that raises EnvironmentFailure, or let its capabilities state more `call_seconds`"
            raise Broken(f"{what} did not return within {limit:g} s: {way}") from None

    async def reset(self, environment: Environment) -> Observation:
        return await self.call("reset", environment.reset(self.task))

    async def step(self, environment: Environment, action: Action) -> Transition:
        """Take a step and count it. Raises ActionError if it is refused, Broken if it hangs."""
        self.tally.tried += 1
        try:
            transition = await self.call(f"step {action}", environment.step(action))
        except ActionError as error:
            self.tally.refusal = f"{action}: {error}"
            raise
        self.tally.accepted += 1
        return transition

    async def walk(self, environment: Environment, seen: Observation, steps: int, key: object = "", *, keys: bool = False) -> list[Taken]:
        """Take up to `steps` actions from the present state, drawn by key, and return each with its state.

        The walk stops before an end. keys: begin with two actions that name no element, if there are any, preferably ones that type:
        typed text goes to the focus.
        """
        dice, path = random.Random(f"{self.seed}/{key}"), list[Taken]()
        for step in range(steps):
            if step >= 2 and self.late(_WALK):
                break
            taken = await self._one(environment, seen, dice, nameless=keys and step < 2)
            if taken is None:
                break
            action, seen = taken
            path.append((action, seen))
        return path

    async def set_out(self, environment: Environment, steps: int, key: object) -> list[Taken]:
        """Walk from the start; try again if the first action ends the episode. Raises Skip if every one does."""
        for attempt in range(TRIES):
            if path := await self.walk(environment, await self.reset(environment), steps, f"{key} {attempt}"):
                return path
        if not self.tally.accepted:
            raise Skip("no action was accepted")
        raise Skip("every action that was tried ends the episode")

    async def _one(self, environment: Environment, seen: Observation, dice: random.Random, *, nameless: bool) -> Taken | None:
        """Take one action that is accepted and does not end the episode; return None if there is none."""
        known = [action for action in self.propose(seen, environment.actions) if not environment.actions.is_final(action)]
        possible = [action for action in known if (seen.fingerprint, action.key) not in self.ends]
        drawn = dice.sample(possible, min(len(possible), 6))
        nowhere = [action for action in possible if nameless and not action.elements]
        first = [action for action in nowhere if action.args] or nowhere
        for action in [*dice.sample(first, min(len(first), 3)), *drawn]:
            try:
                transition = await self.step(environment, action)
            except ActionError:
                continue
            if transition.observation is not None and not transition.terminated:
                return action, transition.observation
            self.ends.add((seen.fingerprint, action.key))
            return None
        return None

    async def retrace(self, environment: Environment, path: Sequence[Taken]) -> str:
        """Repeat a path from the start. Return the first difference; empty if there is none."""
        await self.reset(environment)
        return await self.follow(environment, path)

    async def follow(self, environment: Environment, path: Sequence[Taken]) -> str:
        """Repeat a path from the present state. Return the first difference; empty if there is none."""
        for i, (action, seen) in enumerate(path, 1):
            try:
                transition = await self.step(environment, action)
            except ActionError as error:
                return f"action {i}, {action}, was refused the second time: {error}"
            if transition.observation is None or transition.observation.fingerprint != seen.fingerprint:
                return f"action {i}, {action}, led to another state the second time"
        return ""


Check = Callable[[Subject], Awaitable[str]]
"""Check of one guarantee: returns the finding, in a few words. Raises Broken, or Skip."""


class Skip(ExactError):
    """Check that does not apply to this environment: the text gives the reason."""


async def run(name: str, check: Check, subject: Subject, seconds: float = math.inf) -> Finding:
    """Run one check; an exception becomes a finding. `seconds`: as in Subject."""
    subject = replace(subject, began=subject.now(), seconds=seconds)
    try:
        detail, passed, skipped = await check(subject), True, False
    except Skip as reason:
        detail, passed, skipped = str(reason), True, True
    except Broken as broken:
        detail, passed, skipped = str(broken), False, False
    except Exception as error:  # noqa: BLE001 - any error of foreign code is a finding
        detail, passed, skipped = f"{type(error).__name__.rstrip('_')}: {error}", False, False
    return Finding(name=name, passed=passed, detail=detail, seconds=round(subject.now() - subject.began, 3), skipped=skipped)


_NAMED = re.compile(r"\[\s*(?:[A-Za-z][\w-]*)?\s*\"(?:[^\"\\]|\\.)*\"\s*\]")
"""An element by role and name, or by name alone."""


async def written_actions(environments: EnvironmentFactory, texts: Sequence[str]) -> Propose:
    """Return a function that proposes these actions in every state in which they fit.

    An element may be named by role and name, `click [button "Ok"]`; in a state without it the action is left out. Raises UsageError if a
    text is not an action of the environment, EnvironmentFailure if no environment opens.
    """
    async with environments.open(simulation=True) as environment:
        for text in texts:
            try:
                environment.actions.parse(_NAMED.sub("[1]", text))
            except ActionError as error:
                raise UsageError(f"{text!r} is no action of this environment: {error}") from error

    def propose(seen: Observation, actions: ActionSpace) -> list[Action]:
        return [action for text in texts if (action := _in_state(text, seen, actions)) is not None]

    return propose


def _in_state(text: str, seen: Observation, actions: ActionSpace) -> Action | None:
    try:
        return actions.parse(resolve_names(text, seen.elements))
    except ActionError:
        return None
