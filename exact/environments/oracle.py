"""Environments that record the benchmark's score of each episode, for an oracle.

The benchmark's score is not on an agent's path: `evaluate` is called once, after the committed actions. An oracle is the exception, and its
results are marked wherever they are shown. It consists of these environments, which evaluate wherever an episode ends, in search too, and
write the score into a table; and of `agents.value.controls.OracleValue`, which reads that table.

Most applications do not end an episode: the agent does, by `stop`. So if environments fork, each state that search reaches is also
evaluated as if the agent stopped there. That happens in a separate fork, because an evaluation may open pages, and the searched environment
must stay unchanged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, Fork, ForkableFactory, Snapshot, Transition
from exact.observation import Observation
from exact.parts import name_of
from exact.task import Outcome, Score, Task

EpisodeScores = dict[tuple[str, ...], float]
"""Scores in [0, 1] of episodes that ended, or would have, by task id followed by the canonical texts of their actions."""

STOP = 'stop ""'
"""The canonical text of the action that ends an episode without an answer."""


def informed_factory(environments: EnvironmentFactory, scores: EpisodeScores) -> InformedFactory:
    """Wrap a factory so that the score of each ended episode is written into `scores`. The result is forkable if the factory is."""
    return (
        InformedForkableFactory(environments, scores)
        if isinstance(environments, ForkableFactory)
        else InformedFactory(environments, scores)
    )


class InformedFactory:
    """Factory of environments that record scores."""

    def __init__(self, inner: EnvironmentFactory, scores: EpisodeScores) -> None:
        self._inner, self.scores = inner, scores
        self.paths: dict[str, tuple[str, ...]] = {}
        """Key of each snapshot's state, as in EpisodeScores, by id."""

    @property
    def bytes(self) -> int:
        """Bytes of all snapshots. 0 if the factory does not report them."""
        return int(getattr(self._inner, "bytes", 0))

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """Open a fresh environment."""
        async with self._inner.open(simulation=simulation) as environment:
            yield InformedEnvironment(environment, self, simulation=simulation)

    async def record(self, environment: Environment, path: tuple[str, ...], action: Action, *, ended: bool, simulation: bool) -> None:
        """Record the score of a step that ended the episode, or in search as if the agent stopped after it.

        `environment`: the one in which the step was carried out. `path`: key of the state after it.
        """
        if ended:
            answer = " ".join(map(str, action.args)) if action.name == "stop" else None
            score = await environment.evaluate(Outcome(actions=path[1:], answer=answer))
            self.scores[path] = score.value
        elif simulation:
            await self.score_stop(environment, path)

    async def score_stop(self, environment: Environment, path: tuple[str, ...]) -> None:
        """Record the score as if the agent stopped in the present state. Does nothing here, because it needs a fork."""


class InformedForkableFactory(InformedFactory):
    """Forkable factory of environments that record scores."""

    def __init__(self, inner: ForkableFactory, scores: EpisodeScores) -> None:
        super().__init__(inner, scores)
        self._forks = inner

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[Fork]:
        """Open a fork of a snapshot."""
        async with self._forks.fork(snapshot, simulation=simulation) as fork:
            yield InformedFork(fork, self, simulation=simulation, path=self.paths[snapshot.id])

    def has(self, snapshot: Snapshot) -> bool:
        return self._forks.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._forks.drop(snapshot)

    async def score_stop(self, environment: Environment, path: tuple[str, ...]) -> None:
        """Record the score as if the agent stopped in the present state, by stopping in a fork of it.

        A state of which no snapshot can be taken is left out. Raises EnvironmentFailure.
        """
        obstacle: str = getattr(environment, "obstacle", "")
        if (
            (*path, STOP) in self.scores
            or obstacle
            or environment.capabilities.fidelity == "replay"
            or "stop" not in environment.actions.verbs
        ):
            return
        snapshot = await environment.snapshot()
        try:
            async with self._forks.fork(snapshot, simulation=True) as fork:
                await fork.step(fork.actions.action("stop", ""))
                score = await fork.evaluate(Outcome(actions=(*path[1:], STOP), answer=""))
        finally:
            self._forks.drop(snapshot)
        self.scores[*path, STOP] = score.value


class InformedEnvironment:
    """Environment that records the scores of its episodes."""

    def __init__(self, inner: Environment, environments: InformedFactory, *, simulation: bool, path: tuple[str, ...] = ()) -> None:
        """Wrap an environment. `path`: key of its present state, as in EpisodeScores."""
        self._inner, self._environments, self._simulation, self._path = inner, environments, simulation, path
        self.__name__ = name_of(inner)

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    async def reset(self, task: Task) -> Observation:
        self._path = (task.id,)
        return await self._inner.reset(task)

    async def step(self, action: Action) -> Transition:
        """Carry out the step and let the factory record it."""
        transition = await self._inner.step(action)
        self._path += (action.key,)
        await self._environments.record(self._inner, self._path, action, ended=transition.terminated, simulation=self._simulation)
        return transition

    async def snapshot(self) -> Snapshot:
        snapshot = await self._inner.snapshot()
        self._environments.paths[snapshot.id] = self._path
        return snapshot

    async def restore(self, snapshot: Snapshot) -> Observation:
        observation = await self._inner.restore(snapshot)
        self._path = self._environments.paths[snapshot.id]
        return observation

    async def evaluate(self, outcome: Outcome) -> Score:
        return await self._inner.evaluate(outcome)

    async def close(self) -> None:
        await self._inner.close()

    def __getattr__(self, name: str) -> object:
        """Return any other attribute of the environment, such as `obstacle` or `processor`."""
        return getattr(self._inner, name)


class InformedFork(InformedEnvironment):
    """Fork that records the scores of its episodes."""

    _inner: Fork

    @property
    def observation(self) -> Observation:
        return self._inner.observation
