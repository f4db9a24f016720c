"""The contract between search and environments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol, runtime_checkable

import msgspec

from exact.action import Action, ActionSpace
from exact.errors import InfrastructureError
from exact.observation import Observation
from exact.task import Outcome, Score, Task

Fidelity = Literal["full", "client", "page", "replay"]

_SAFE = ("GET", "HEAD", "OPTIONS")


class SideEffect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that a step did, or tried to do, outside the page."""

    kind: Literal["request", "blocked", "download", "dialog", "tab"]
    """`request`: a write that was sent; `blocked`: a request that was refused or aborted."""
    method: str = ""
    url: str = ""
    status: int = 0
    """Of the answer; 0 where there was none when the step ended."""
    detail: str = ""
    size: int = 0
    """Of a download, in bytes."""
    digest: str = ""
    """Of a download: hex SHA-256."""

    @property
    def is_write(self) -> bool:
        """Whether the outside may have changed."""
        return self.kind == "request" and self.method not in _SAFE

    @property
    def is_held(self) -> bool:
        """Whether a write was held back, so that what would have come is unknown."""
        return self.kind == "blocked" and bool(self.method) and self.method not in _SAFE


NOTES = ("refused", "download", "unsettled", "moved")
"""What an agent is told of a step besides where it led: why it was not carried out to its end, why a file was not kept, that the page was
still changing, what was drawn to another place though all reads as before. Nothing else in `info` reaches one."""


def note(info: Mapping[str, str]) -> str:
    """What an agent is told of it, in one line; empty if nothing."""
    return "; ".join(info[name] for name in NOTES if info.get(name))


class Transition(msgspec.Struct, frozen=True, kw_only=True):
    """What a step led to. The reward is not on this path."""

    observation: Observation | None
    """None when the step ended the episode: a terminated state is not observed."""
    terminated: bool = False
    effects: tuple[SideEffect, ...] = ()
    info: dict[str, str] = {}
    """What else is known of it; journalled. An agent is told those of NOTES."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """A handle by which one environment can return to a state."""

    id: str
    fidelity: Fidelity
    fingerprint: str
    severed: str = ""
    """What a return to it finds cut off, so that the fidelity is lower than that of the environment. Empty if nothing."""


class Capabilities(msgspec.Struct, frozen=True, kw_only=True):
    """What an environment can do; constant for its lifetime."""

    fidelity: Fidelity
    """Of its snapshots. `replay`: it has none of its own; returning is reset and replay (see restore/)."""
    isolated: bool
    """Whether `reset` undoes everything: no server or account outside keeps what a step did."""
    deterministic: bool = True
    """Whether equal actions after equal resets lead to equal fingerprints."""
    concurrent: bool = True
    """Whether several may be open and act at once. Where not, one worker steps at a time."""
    screenshots: bool = False
    evaluates: bool = True
    """Whether `evaluate` has an evaluator; without one a run ends as judged by the agent itself."""


class Environment(Protocol):
    """One environment to act in. Not concurrent: one call at a time."""

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def actions(self) -> ActionSpace:
        """The grammar of this environment's actions."""
        ...

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to the task's start. Raises EnvironmentFailure."""
        ...

    async def step(self, action: Action) -> Transition:
        """Carry out one action and settle.

        Raises ActionError when it does not fit the present state, which is then unchanged (or the episode has terminated),
        and EnvironmentFailure when the environment broke.
        """
        ...

    async def snapshot(self) -> Snapshot:
        """A handle on the present state. Raises EnvironmentFailure where fidelity is `replay`."""
        ...

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a state of this environment. Raises EnvironmentFailure if it is gone."""
        ...

    async def evaluate(self, outcome: Outcome) -> Score:
        """The benchmark's verdict on the environment as it is now: called once, after the committed actions only."""
        ...

    async def close(self) -> None:
        """Let go of everything. Never raises; may be called twice."""
        ...


class EnvironmentFactory(Protocol):
    """Opens environments of one kind. Several may be open at once."""

    def open(self, *, simulation: bool) -> AbstractAsyncContextManager[Environment]:
        """A fresh environment.

        A speculative one must not change the outside: unless the environment is isolated, its writes are aborted and recorded.
        """
        ...


class Fork(Environment, Protocol):
    """An environment that was made of a snapshot."""

    @property
    def observation(self) -> Observation:
        """The last one: of a branch that was just made, how it arrived."""
        ...


async def scored(environment: Environment, task: Task, outcome: Outcome) -> Score:
    """What an environment's evaluator gives. Raises InfrastructureError where that is no score."""
    score = await environment.evaluate(outcome)
    if not 0 <= score.value <= 1:  # nor NaN
        raise InfrastructureError(f"the evaluator of {task.id} gave {score.value}: a score is in [0, 1]")
    return score


@runtime_checkable
class ForkableFactory(EnvironmentFactory, Protocol):
    """Environments that are kept as a whole, so that any number of branches of one snapshot live side by side."""

    def fork(self, snapshot: Snapshot, *, simulation: bool) -> AbstractAsyncContextManager[Fork]:
        """Another environment that stands at a snapshot, whichever environment took it. Raises EnvironmentFailure if it is gone."""
        ...

    def has(self, snapshot: Snapshot) -> bool:
        """Whether it can still be returned to."""
        ...

    def drop(self, snapshot: Snapshot) -> None:
        """Nobody will come back to it."""
        ...
