"""Judges of measured quality: each state that a search evaluates is labelled with what the policy alone reaches from there.

The label is found in an environment of its own: the path to the state is replayed there, the policy follows its first proposals to the end,
and the benchmark scores it, as `exact train calibration --label` does. An oracle of known quality is that label with an error; other
judges do not see it.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from _greedy import follow, started, stepped

from exact.action import Action
from exact.agents.base import Policy, ValueFunction
from exact.benchmarks.miniwob import MiniWob
from exact.context import Context, Evaluation, Taken
from exact.environments.base import Environment, EnvironmentFactory
from exact.environments.toy.graph import gaussian
from exact.errors import ActionError, EnvironmentFailure
from exact.task import Outcome, Task

AT_ONCE, LONGEST = 3, 180.0
"""Labels that are found at once, and the seconds after which one is a failure of its environment."""
UNKNOWN = 0.5
"""An oracle's value of a state that was not reached again."""


class Label(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the policy alone reaches from a state."""

    task: str
    state: str
    """Digest of the path to it."""
    outcome: float | None
    reason: str = ""
    """Why there is no outcome: the state was not reached again."""


class Judged(msgspec.Struct, frozen=True):
    """One evaluation of one row."""

    row: str
    task: str
    state: str
    ended: bool
    value: float
    outcome: float | None


def digest(actions: Sequence[Action]) -> str:
    """Return the digest of a path of actions."""
    return hashlib.sha256("\n".join(action.key for action in actions).encode()).hexdigest()[:16]


class Found(NamedTuple):
    """A walk in an environment: all contexts from the reached state on, or why it was not reached."""

    contexts: list[Context]
    reason: str = ""


class Continuations:
    """Labels of states, kept in a file."""

    def __init__(self, environments: EnvironmentFactory, policy: Policy, actions: int, file: Path) -> None:
        self._environments, self._policy, self._actions, self._file = environments, policy, actions, file
        self._room = asyncio.Semaphore(AT_ONCE)
        lines = file.read_bytes().splitlines() if file.exists() else []
        labels = [msgspec.json.decode(line, type=Label) for line in lines]
        self._known = {(label.task, label.state): label for label in labels}

    async def label(self, context: Context) -> Label:
        """Return the label of a state. Raises EnvironmentFailure."""
        actions = [step.action for step in context.history if not step.error]
        key = (context.task.id, digest(actions))
        if key not in self._known:
            async with self._room:
                if key not in self._known:
                    await self._find(MiniWob().task(context.task.id), actions, context)
        return self._known[key]

    async def _find(self, task: Task, actions: Sequence[Action], context: Context) -> None:
        for tries_left in (1, 0):
            try:
                async with asyncio.timeout(LONGEST), self._environments.open(simulation=False) as environment:
                    return await self._found(environment, task, actions, context)
            except (EnvironmentFailure, TimeoutError) as error:
                if not tries_left:
                    raise EnvironmentFailure(f"no label for a state of {task.id}: {error}") from error

    async def _found(self, environment: Environment, task: Task, actions: Sequence[Action], context: Context) -> None:
        contexts, reason = await self._walk(environment, task, actions, context)
        if reason:
            return self._keep(Label(task.id, digest(actions), None, reason))
        done = tuple(step.action.key for step in contexts[-1].history)
        outcome = (await environment.evaluate(Outcome(actions=done))).value
        for each in contexts:
            self._keep(Label(task.id, digest([step.action for step in each.history]), outcome))

    async def _walk(self, environment: Environment, task: Task, actions: Sequence[Action], context: Context) -> Found:
        seen = await started(environment, task, self._actions)
        for action in actions:
            if seen.terminated:
                return Found([], "the episode ended before")
            try:
                seen = await stepped(environment, seen, Taken(observation=seen.observation, action=action))
            except ActionError as error:
                return Found([], f"{action.key} was refused: {error}")
        if seen.terminated != context.terminated:
            return Found([], "the episode ended there" if seen.terminated else "the episode did not end there")
        if not seen.terminated and seen.observation.fingerprint != context.observation.fingerprint:
            return Found([], "another state was reached")
        return Found(await follow(environment, self._policy, seen))

    def _keep(self, label: Label) -> None:
        key = (label.task, label.state)
        if key not in self._known:
            self._known[key] = label
            with self._file.open("ab") as lines:
                lines.write(msgspec.json.encode(label) + b"\n")


class NoisyOracle:
    """The label of a state plus an error, clipped to [0, 1]. The error is drawn once for each state, so asking again does not help."""

    def __init__(self, sd: float, seed: int = 0) -> None:
        self._sd, self._seed = sd, seed

    def value(self, label: Label) -> float:
        """Return the value of a state."""
        if label.outcome is None:
            return UNKNOWN
        error = self._sd * gaussian(self._seed, "oracle", label.task, label.state)
        return min(1.0, max(0.0, label.outcome + error))


class RecordedValue:
    """A judge whose evaluations are kept beside the labels of their states."""

    def __init__(self, row: str, judge: ValueFunction | NoisyOracle, labels: Continuations, keep: Callable[[Judged], None]) -> None:
        self._row, self._judge, self._labels, self._keep = row, judge, labels, keep

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the judge's evaluation. Raises EnvironmentFailure where no label can be found."""
        label = await self._labels.label(context)
        if isinstance(self._judge, NoisyOracle):
            found = Evaluation(value=self._judge.value(label), rationale="oracle: what the policy alone reaches from here", informed=True)
        else:
            found = await self._judge.evaluate(context)
        self._keep(Judged(self._row, context.task.id, label.state, context.terminated, found.value, label.outcome))
        return found
