"""An environment over a toy graph: real contracts, no browser, faults on demand. `ToyFactory` opens it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from exact.action import Action, ActionSpace, Parameter, Verb
from exact.environments.base import Capabilities, SideEffect, Snapshot, Transition
from exact.environments.toy.graph import ToyGraph
from exact.errors import ActionError, EnvironmentFailure, UsageError
from exact.observation import Element, Observation
from exact.task import Outcome, Score, Task

TOY_ACTIONS = ActionSpace(
    [
        Verb(name="go", form=(Parameter.TEXT,), help="Follow the link of that name."),
        Verb(name="stop", form=(Parameter.TEXT,), help="End the attempt with an answer.", final=True),
    ]
)


Operation = Literal["reset", "step", "snapshot", "restore", "fork", "evaluate"]
"""Operation that a test may delay."""


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Faults to inject, counted over all environments of one ToyFactory."""

    fail_every: int | None = None
    """Every n-th step breaks its environment with EnvironmentFailure; `reset` repairs it."""
    drift_after: int | None = None
    """Number of resets after which every reset gives the states another text: replays drift."""


@dataclass
class Counts:
    """Counts over the environments of one ToyFactory."""

    opened: int = 0
    """Environments opened, forks included."""
    closed: int = 0
    forks: int = 0
    snapshots: int = 0
    most_live: int = 0
    """Maximum number of environments open at once."""
    resets: int = 0
    restores: int = 0
    steps: int = 0
    """Steps requested, failed and refused ones included."""
    evaluations: int = 0
    writes: list[str] = field(default_factory=list)
    """Writes that reached the outside, oldest first: `state: action`. Writes of an isolated environment do not."""

    @property
    def live(self) -> int:
        """The number of environments that are open now."""
        return self.opened - self.closed


class ToyPosition(NamedTuple):
    """Position of an environment."""

    state: str
    drift: int
    answer: str | None


class ToySnapshot(NamedTuple):
    """Content of a snapshot."""

    position: ToyPosition
    tried: Mapping[tuple[str, str], int]
    """Number of times that each (state, link) had been taken: a fork continues the count."""


@dataclass(frozen=True, kw_only=True)
class FactoryState:
    """State shared by the environments of one ToyFactory."""

    graph: ToyGraph
    fidelity: Literal["full", "replay"]
    isolated: bool
    faults: Faults
    latency: Callable[[], Awaitable[None]] | None
    wait: Callable[[Operation], Awaitable[None]] | None
    counts: Counts = field(default_factory=Counts)
    snapshots: dict[str, ToySnapshot] = field(default_factory=dict)
    """Snapshots by id, until they are dropped."""

    async def pause(self, operation: Operation) -> None:
        """Await the delay of an operation; return at once if there is none."""
        if self.latency and operation == "step":
            await self.latency()
        if self.wait:
            await self.wait(operation)


class ToyEnvironment:
    """Toy environment to act in. `ToyFactory` opens it."""

    def __init__(self, shared: FactoryState, *, simulation: bool, at: ToySnapshot | None = None) -> None:
        """Open the environment.

        at: the snapshot at which it begins without a reset.
        """
        self._shared, self._simulation = shared, simulation
        self._graph, self._counts = shared.graph, shared.counts
        deterministic = shared.graph.deterministic and shared.faults.drift_after is None
        self.capabilities = Capabilities(fidelity=shared.fidelity, isolated=shared.isolated, deterministic=deterministic)
        self.actions = TOY_ACTIONS
        self._number = shared.counts.opened
        self._own = dict[str, ToySnapshot]()
        """Snapshots that it can return to: it took them, and has not broken since."""
        self._taken = 0
        self._position: ToyPosition | None = at.position if at else None
        self._tried = dict(at.tried) if at else {}
        self._broken = "" if at else "not reset yet: call reset first"
        self._busy = self._closed = False
        self._reward = 0.0

    @property
    def observation(self) -> Observation:
        """The present observation. Raises EnvironmentFailure before a reset."""
        return self._observe(self._present())

    async def reset(self, task: Task) -> Observation:
        """Bring the environment to its start. Repairs a broken one."""
        with self._call():
            self._counts.resets += 1
            await self._shared.pause("reset")
            after = self._shared.faults.drift_after
            self._reward = 0.0
            drift = 0 if after is None else max(0, self._counts.resets - after)
            self._broken, self._position = "", ToyPosition(self._graph.start, drift, None)
            return self._observe(self._position)

    async def step(self, action: Action) -> Transition:
        """Follow a link or stop. Raises ActionError (unknown link, episode ended) and EnvironmentFailure (fault, closed)."""
        with self._call():
            self._counts.steps += 1
            position = self._present()
            number, every = self._counts.steps, self._shared.faults.fail_every
            await self._shared.pause("step")
            if every and number % every == 0:
                self._break(number)
            transition = self._follow(position, action)
            self._reward = self._score().value if transition.terminated else 0.0
            return transition

    def reward(self) -> float:
        """Return the reward of the state that the last step reached, in [0, 1]. 0 if it did not end the episode."""
        return self._reward

    async def go_on(self) -> Observation:
        """Observe the present state, in which the next goal of a session begins. Raises EnvironmentFailure."""
        with self._call():
            position = self._position = self._present()._replace(answer=None)
            return self._observe(position)

    async def snapshot(self) -> Snapshot:
        """Return a handle on the present state. Raises EnvironmentFailure in a `replay` environment and after the episode's end."""
        with self._call():
            position = self._present()
            if self.capabilities.fidelity == "replay":
                raise EnvironmentFailure("this toy environment has no snapshots: return by reset and replay")
            if self._has_ended(position):
                raise EnvironmentFailure("the episode has ended: take snapshots before that")
            await self._shared.pause("snapshot")
            id, self._taken = f"{self._number}.{self._taken}", self._taken + 1
            self._own[id] = self._shared.snapshots[id] = ToySnapshot(position, dict(self._tried))
            self._counts.snapshots += 1
            return Snapshot(id=id, fidelity="full", fingerprint=self._observe(position).fingerprint)

    async def restore(self, snapshot: Snapshot) -> Observation:
        """Return to a state of this environment. Raises EnvironmentFailure if it has no such snapshot."""
        with self._call():
            self._present()
            if snapshot.id not in self._own or snapshot.id not in self._shared.snapshots:
                raise EnvironmentFailure(f"snapshot {snapshot.id!r} is gone: return by reset and replay")
            self._counts.restores += 1
            await self._shared.pause("restore")
            self._position, self._reward = self._own[snapshot.id].position, 0.0
            return self._observe(self._position)

    async def evaluate(self, outcome: Outcome) -> Score:
        """Return the reward of the state in which the episode ended; 0 if it did not end."""
        with self._call():
            self._present()
            self._counts.evaluations += 1
            await self._shared.pause("evaluate")
            return self._score()

    async def close(self) -> None:
        """Release everything. May be called twice."""
        if not self._closed:
            self._closed = True
            self._counts.closed += 1
            self._own.clear()

    def _follow(self, position: ToyPosition, action: Action) -> Transition:
        if self._has_ended(position):
            raise ActionError(f"{action}: the episode has ended, nothing can be done")
        if action.name == "stop":
            self._position = position._replace(answer=str(action.args[0]))
            return Transition(observation=None, terminated=True)
        if action.name != "go":
            raise ActionError(f"unknown action {action}: valid: {', '.join(self.actions.verbs)}")
        edges = self._graph.states[position.state].edges
        edge = edges.get(str(action.args[0]))
        if edge is None:
            valid = ", ".join(self.actions.action("go", name).key for name in edges)
            raise ActionError(f"{action} leads nowhere here: valid: {valid or 'stop'}")
        effects = self._write_effect(position, action) if edge.write else ()
        if all(effect.kind != "blocked" for effect in effects):
            position = self._position = position._replace(state=self._next_state(position.state, str(action.args[0])))
        if self._has_ended(position):
            return Transition(observation=None, terminated=True, effects=effects)
        return Transition(observation=self._observe(position), effects=effects)

    def _score(self) -> Score:
        position = self._present()
        state = self._graph.states[position.state]
        if state.reward is not None:
            return _score(state.reward, f"ended in {position.state!r}")
        if position.answer is not None:
            return _score(state.answers.get(position.answer, 0.0), f"stopped in {position.state!r} with {position.answer!r}")
        return _score(0.0, f"not ended: still in {position.state!r}")

    def _next_state(self, state: str, link: str) -> str:
        """Return the target of a link this time."""
        tried = self._tried.get((state, link), 0)
        if self._graph.states[state].edges[link].slips:
            self._tried[state, link] = tried + 1
        return self._graph.next_state(state, link, tried)

    def _write_effect(self, position: ToyPosition, action: Action) -> tuple[SideEffect, ...]:
        """Return the side effect of a write: blocked in a simulation, unless the environment can undo it."""
        url = f"toy://{self._graph.name}/{position.state}"
        if self._simulation and not self.capabilities.isolated:
            return (SideEffect(kind="blocked", method="POST", url=url),)
        if not self.capabilities.isolated:
            self._counts.writes.append(f"{position.state}: {action}")
        return (SideEffect(kind="request", method="POST", url=url, status=200),)

    def _has_ended(self, position: ToyPosition) -> bool:
        return position.answer is not None or self._graph.states[position.state].reward is not None

    def _observe(self, position: ToyPosition) -> Observation:
        state = self._graph.states[position.state]
        text = state.text + (f" (visit {position.drift})" if position.drift else "")
        visible = [("StaticText", text), *(("link", name) for name in state.edges)]
        elements = tuple(Element(id=str(i), role=role, name=name) for i, (role, name) in enumerate(visible, 1))
        lines = "\n".join(f'[{e.id}] {e.role} "{e.name}"' for e in elements)
        return Observation(
            text=lines,
            fingerprint=hashlib.blake2b(f"{self._graph.name}\n{lines}".encode(), digest_size=16).hexdigest(),
            url=f"toy://{self._graph.name}/{position.state}",
            title=self._graph.name,
            elements=elements,
        )

    def _present(self) -> ToyPosition:
        if self._broken or self._position is None:
            raise EnvironmentFailure(f"the toy environment is {self._broken}")
        return self._position

    def _break(self, step: int) -> None:
        self._broken = f"broken at step {step}, as was asked for: reset it or open a fresh one"
        self._own.clear()
        raise EnvironmentFailure(f"the toy environment is {self._broken}")

    @contextlib.contextmanager
    def _call(self) -> Iterator[None]:
        if self._closed:
            raise EnvironmentFailure("the toy environment is closed: open a fresh one")
        if self._busy:
            raise UsageError("a toy environment was called while another call runs in it: await one call at a time")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


def _score(reward: float, reason: str) -> Score:
    return Score(value=reward, success=reward >= 1.0, raw=reward, reason=reason)
