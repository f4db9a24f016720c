"""Environments over toy worlds: real contracts, no browser, faults on demand.

worlds = ToyWorlds(chain(3))
async with worlds.open(speculative=True) as world:
    observation = await world.reset(toy_task("chain"))
    transition = await world.step(world.actions.parse('go "on"'))
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, Effect, Snapshot, Transition
from exact.environments.toy_worlds import (
    WORLDS,
    ToyEdge,
    ToyState,
    ToyWorld,
    bandit,
    chain,
    deceptive_chain,
    form,
    maze,
    toy_task,
    toy_world,
)
from exact.errors import ActionError, EnvironmentError_, UsageError
from exact.observation import Element, Observation
from exact.task import Outcome, Score, Task

__all__ = [
    "TOY_ACTIONS",
    "WORLDS",
    "Counts",
    "Faults",
    "ToyEdge",
    "ToyEnvironment",
    "ToyState",
    "ToyWorld",
    "ToyWorlds",
    "bandit",
    "chain",
    "deceptive_chain",
    "form",
    "maze",
    "toy_task",
    "toy_world",
]

TOY_ACTIONS = ActionSpace(
    [
        Verb(name="go", form=(Parameter.TEXT,), help="Follow the link of that name."),
        Verb(name="stop", form=(Parameter.TEXT,), help="End the attempt with an answer.", final=True),
    ]
)


@dataclass(frozen=True, kw_only=True)
class Faults:
    """What goes wrong, counted over all environments of one ToyWorlds."""

    fail_every: int | None = None
    """Every n-th step breaks its world with EnvironmentError_; `reset` mends it."""
    drift_after: int | None = None
    """From the reset after the n-th on, every reset gives the states another text: replays drift."""


@dataclass
class Counts:
    """What the environments of one ToyWorlds did so far."""

    opened: int = 0
    closed: int = 0
    resets: int = 0
    restores: int = 0
    steps: int = 0
    """Those asked for, failed and refused ones included."""
    evaluations: int = 0
    writes: list[str] = field(default_factory=list)
    """Writes that reached the outside, oldest first: `state: action`. Those of a sealed world do not."""


class _Place(NamedTuple):
    state: str
    drift: int
    answer: str | None


class ToyEnvironment:
    """One toy world to act in. Opened by ToyWorlds."""

    def __init__(
        self,
        world: ToyWorld,
        *,
        fidelity: Literal["world", "replay"],
        sealed: bool,
        speculative: bool,
        faults: Faults,
        counts: Counts,
        latency: Callable[[], Awaitable[None]] | None,
    ) -> None:
        self._world, self._speculative, self._faults, self._counts, self._latency = world, speculative, faults, counts, latency
        self.capabilities = Capabilities(fidelity=fidelity, sealed=sealed, deterministic=faults.drift_after is None)
        self.actions = TOY_ACTIONS
        self._number = counts.opened
        self._snapshots: dict[str, _Place] = {}
        self._place: _Place | None = None
        self._broken = "not reset yet: call reset first"
        self._busy = self._closed = False

    async def reset(self, task: Task) -> Observation:
        """Bring the world to its start; mends a broken one."""
        with self._call():
            self._counts.resets += 1
            after = self._faults.drift_after
            drift = 0 if after is None else max(0, self._counts.resets - after)
            self._broken, self._place = "", _Place(self._world.start, drift, None)
            return self._observed(self._place)

    async def step(self, action: Action) -> Transition:
        """Follow a link or stop. Raises ActionError (unknown link, episode ended) and EnvironmentError_ (fault, closed)."""
        with self._call():
            self._counts.steps += 1
            place = self._here()
            if self._latency:
                await self._latency()
            if self._faults.fail_every and self._counts.steps % self._faults.fail_every == 0:
                self._break()
            return self._moved(place, action)

    async def snapshot(self) -> Snapshot:
        """A handle on the present state. Raises EnvironmentError_ in a `replay` world and after the episode's end."""
        with self._call():
            place = self._here()
            if self.capabilities.fidelity == "replay":
                raise EnvironmentError_("this toy world has no snapshots: return by reset and replay")
            if self._ended(place):
                raise EnvironmentError_("the episode has ended: take snapshots before that")
            id = f"{self._number}.{len(self._snapshots)}"
            self._snapshots[id] = place
            return Snapshot(id=id, fidelity="world", fingerprint=self._observed(place).fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a state of this environment. Raises EnvironmentError_ where it has no such snapshot."""
        with self._call():
            self._here()
            place = self._snapshots.get(snapshot.id)
            if place is None:
                raise EnvironmentError_(f"snapshot {snapshot.id!r} is gone: return by reset and replay")
            self._counts.restores += 1
            self._place = place
            return self._observed(place)

    async def evaluate(self, outcome: Outcome) -> Score:
        """The reward of where the episode ended; 0 where it did not end."""
        with self._call():
            place = self._here()
            self._counts.evaluations += 1
            state = self._world.states[place.state]
            if state.reward is not None:
                return _score(state.reward, f"ended in {place.state!r}")
            if place.answer is not None:
                return _score(state.answers.get(place.answer, 0.0), f"stopped in {place.state!r} with {place.answer!r}")
            return _score(0.0, f"not ended: still in {place.state!r}")

    async def close(self) -> None:
        """Let go of everything; may be called twice."""
        if not self._closed:
            self._closed = True
            self._counts.closed += 1
            self._snapshots.clear()

    def _moved(self, place: _Place, action: Action) -> Transition:
        if self._ended(place):
            raise ActionError(f"{action}: the episode has ended, nothing can be done")
        if action.name == "stop":
            self._place = place._replace(answer=str(action.args[0]))
            return Transition(observation=None, terminated=True)
        edges = self._world.states[place.state].edges
        edge = edges.get(str(action.args[0]))
        if edge is None:
            valid = ", ".join(self.actions.action("go", name).key for name in edges)
            raise ActionError(f"{action} leads nowhere here: valid: {valid or 'stop'}")
        effects = self._written(place, action) if edge.write else ()
        if all(effect.kind != "blocked" for effect in effects):
            place = self._place = place._replace(state=edge.to)
        if self._ended(place):
            return Transition(observation=None, terminated=True, effects=effects)
        return Transition(observation=self._observed(place), effects=effects)

    def _written(self, place: _Place, action: Action) -> tuple[Effect, ...]:
        """The effect of a write: blocked on a mere try, unless the world can undo it."""
        url = f"toy://{self._world.name}/{place.state}"
        if self._speculative and not self.capabilities.sealed:
            return (Effect(kind="blocked", method="POST", url=url),)
        if not self.capabilities.sealed:
            self._counts.writes.append(f"{place.state}: {action}")
        return (Effect(kind="request", method="POST", url=url, status=200),)

    def _ended(self, place: _Place) -> bool:
        return place.answer is not None or self._world.states[place.state].reward is not None

    def _observed(self, place: _Place) -> Observation:
        state = self._world.states[place.state]
        text = state.text + (f" (visit {place.drift})" if place.drift else "")
        shown = [("StaticText", text), *(("link", name) for name in state.edges)]
        elements = tuple(Element(id=str(i), role=role, name=name) for i, (role, name) in enumerate(shown, 1))
        lines = "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements)
        return Observation(
            text=lines,
            fingerprint=hashlib.blake2b(f"{self._world.name}\n{lines}".encode(), digest_size=16).hexdigest(),
            url=f"toy://{self._world.name}/{place.state}",
            title=self._world.name,
            elements=elements,
        )

    def _here(self) -> _Place:
        if self._broken or self._place is None:
            raise EnvironmentError_(f"the toy world is {self._broken}")
        return self._place

    def _break(self) -> None:
        self._broken = f"broken at step {self._counts.steps}, as was asked for: reset it or open a fresh one"
        self._snapshots.clear()
        raise EnvironmentError_(f"the toy world is {self._broken}")

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        if self._closed:
            raise EnvironmentError_("the toy world is closed: open a fresh one")
        if self._busy:
            raise UsageError("a toy world was called while another call runs in it: await one call at a time")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


class ToyWorlds:
    """Opens environments of one toy world; `counts` tells what they did."""

    def __init__(
        self,
        world: ToyWorld,
        *,
        fidelity: Literal["world", "replay"] = "world",
        sealed: bool = True,
        faults: Faults | None = None,
        latency: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`latency` is awaited in each step, before its effect; nothing waits without it."""
        self.world, self.counts = world, Counts()
        self._fidelity, self._sealed, self._faults, self._latency = fidelity, sealed, faults or Faults(), latency

    @contextlib.asynccontextmanager
    async def open(self, *, speculative: bool) -> AsyncIterator[ToyEnvironment]:
        """A fresh environment, closed on leaving. In a speculative one of a world that is not sealed, writes are blocked."""
        self.counts.opened += 1
        environment = ToyEnvironment(
            self.world,
            fidelity=self._fidelity,
            sealed=self._sealed,
            speculative=speculative,
            faults=self._faults,
            counts=self.counts,
            latency=self._latency,
        )
        try:
            yield environment
        finally:
            await environment.close()


def _score(reward: float, reason: str) -> Score:
    return Score(value=reward, success=reward >= 1.0, raw=reward, reason=reason)
