"""Environments that tell how each episode ended, or would if the agent stopped, for an oracle.

The benchmark's verdict is not on an agent's path: `evaluate` is called once, after the committed actions. An oracle is the exception,
marked wherever its results stand. It is made of these environments, which ask for the verdict wherever an episode ends, in search too, and
write it into a table; of `agents.value.controls.OracleValue`, which looks there; and of nothing else.

An application ends no episode: the agent does, by `stop`. So where environments fork, each state that search comes to is also judged as if
the agent stopped there: in a branch of its own, for a verdict may open pages, and the searched environment must not know of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from exact.action import Action, ActionSpace
from exact.environments.base import Capabilities, Environment, EnvironmentFactory, Fork, ForkableFactory, Snapshot, Transition
from exact.observation import Observation
from exact.task import Outcome, Score, Task

EpisodeScores = dict[tuple[str, ...], float]
"""Scores in [0, 1] of episodes that ended, or would, by task id and the canonical texts of their actions."""

STOP = 'stop ""'
"""The canonical text of the action that ends an episode without an answer."""


def informed_factory(environments: EnvironmentFactory, verdicts: EpisodeScores) -> InformedFactory:
    """The same environments, forking where those do; each ended episode's score is written into `verdicts`."""
    return (
        InformedForkableFactory(environments, verdicts)
        if isinstance(environments, ForkableFactory)
        else InformedFactory(environments, verdicts)
    )


class InformedFactory:
    """Opens environments that tell."""

    def __init__(self, inner: EnvironmentFactory, verdicts: EpisodeScores) -> None:
        self._inner, self.verdicts = inner, verdicts
        self.ways: dict[str, tuple[str, ...]] = {}
        """To each snapshot, as in `EpisodeScores`."""

    @property
    def bytes(self) -> int:
        """What snapshots hold now."""
        return int(getattr(self._inner, "bytes", 0))

    @asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[Environment]:
        """A fresh environment of the inner environments."""
        async with self._inner.open(simulation=simulation) as environment:
            yield InformedEnvironment(environment, self, simulation=simulation)

    async def ask(self, environment: Environment, way: tuple[str, ...]) -> None:
        """Write down what the verdict would be if the agent stopped where an environment stands. These environments cannot ask."""


class InformedForkableFactory(InformedFactory):
    """Opens environments that tell, and forks them."""

    def __init__(self, inner: ForkableFactory, verdicts: EpisodeScores) -> None:
        super().__init__(inner, verdicts)
        self._forks = inner

    @asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[Fork]:
        """A branch of the inner environments."""
        async with self._forks.fork(snapshot, simulation=simulation) as branch:
            yield InformedFork(branch, self, simulation=simulation, way=self.ways[snapshot.id])

    def has(self, snapshot: Snapshot) -> bool:
        return self._forks.has(snapshot)

    def drop(self, snapshot: Snapshot) -> None:
        self._forks.drop(snapshot)

    async def ask(self, environment: Environment, way: tuple[str, ...]) -> None:
        """In a branch that nobody else is in. Of a state of which no snapshot can be taken, nothing is told. Raises EnvironmentFailure."""
        obstacle: str = getattr(environment, "obstacle", "")
        if (
            (*way, STOP) in self.verdicts
            or obstacle
            or environment.capabilities.fidelity == "replay"
            or "stop" not in environment.actions.verbs
        ):
            return
        snapshot = await environment.snapshot()
        try:
            async with self._forks.fork(snapshot, simulation=True) as branch:
                await branch.step(branch.actions.action("stop", ""))
                score = await branch.evaluate(Outcome(actions=(*way[1:], STOP), answer=""))
        finally:
            self._forks.drop(snapshot)
        self.verdicts[*way, STOP] = score.value


class InformedEnvironment:
    """One environment that tells."""

    def __init__(self, inner: Environment, environments: InformedFactory, *, simulation: bool, way: tuple[str, ...] = ()) -> None:
        """`way`: to where it stands, as in `EpisodeScores`."""
        self._inner, self._environments, self._simulation, self._way = inner, environments, simulation, way

    @property
    def capabilities(self) -> Capabilities:
        return self._inner.capabilities

    @property
    def actions(self) -> ActionSpace:
        return self._inner.actions

    async def reset(self, task: Task) -> Observation:
        self._way = (task.id,)
        return await self._inner.reset(task)

    async def step(self, action: Action) -> Transition:
        """The inner step; where it ends the episode, its verdict; where it goes on in search, what it would be."""
        transition = await self._inner.step(action)
        self._way += (action.key,)
        if transition.terminated:
            answer = " ".join(map(str, action.args)) if action.name == "stop" else None
            score = await self._inner.evaluate(Outcome(actions=self._way[1:], answer=answer))
            self._environments.verdicts[self._way] = score.value
        elif self._simulation:
            await self._environments.ask(self._inner, self._way)
        return transition

    async def snapshot(self) -> Snapshot:
        snapshot = await self._inner.snapshot()
        self._environments.ways[snapshot.id] = self._way
        return snapshot

    async def restore(self, snapshot: Snapshot) -> Observation:
        observation = await self._inner.restore(snapshot)
        self._way = self._environments.ways[snapshot.id]
        return observation

    async def evaluate(self, outcome: Outcome) -> Score:
        return await self._inner.evaluate(outcome)

    async def close(self) -> None:
        await self._inner.close()

    def __getattr__(self, name: str) -> object:
        """What else the environment offers: `obstacle`, `processor`, ..."""
        return getattr(self._inner, name)


class InformedFork(InformedEnvironment):
    """One that was made of a snapshot."""

    _inner: Fork

    @property
    def observation(self) -> Observation:
        return self._inner.observation
