"""Factories of toy environments: real contracts, no browser, faults on demand.

environments = ToyFactory(chain(3))
async with environments.open(simulation=True) as environment:
    observation = await environment.reset(toy_task("chain"))
    transition = await environment.step(environment.actions.parse('go "on"'))
    async with environments.fork(await environment.snapshot(), simulation=True) as other:
        ...
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

from exact.environments.base import Snapshot
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.decision_environment import decision_graph
from exact.environments.toy.environment import TOY_ACTIONS, Counts, FactoryState, Faults, Operation, ToyEnvironment, ToySnapshot
from exact.environments.toy.known import (
    WORLDS,
    ToyEdge,
    ToyGraph,
    ToyState,
    bandit,
    bernoulli_bandit,
    chain,
    deceptive_chain,
    doors,
    form,
    ice,
    maze,
    toy_graph,
    toy_task,
    trapped_maze,
)
from exact.errors import EnvironmentFailure

__all__ = [
    "TOY_ACTIONS",
    "WORLDS",
    "Counts",
    "DecisionTree",
    "Faults",
    "Operation",
    "ToyEdge",
    "ToyEnvironment",
    "ToyState",
    "ToyGraph",
    "ToyFactory",
    "bandit",
    "bernoulli_bandit",
    "chain",
    "deceptive_chain",
    "decision_graph",
    "doors",
    "form",
    "ice",
    "maze",
    "toy_task",
    "toy_graph",
    "trapped_maze",
]


class ToyFactory:
    """Factory of environments over one toy graph, and of forks of their snapshots; `counts` counts their operations."""

    def __init__(
        self,
        graph: ToyGraph,
        *,
        fidelity: Literal["full", "replay"] = "full",
        isolated: bool | None = None,
        faults: Faults | None = None,
        latency: Callable[[], Awaitable[None]] | None = None,
        wait: Callable[[Operation], Awaitable[None]] | None = None,
    ) -> None:
        """Configure the factory.

        isolated: None takes the graph's setting. latency: awaited in each step; wait: awaited in each operation, before its effect.
        Nothing waits without them.
        """
        seals = graph.isolated if isolated is None else isolated
        self._shared = FactoryState(graph=graph, fidelity=fidelity, isolated=seals, faults=faults or Faults(), latency=latency, wait=wait)
        self.graph, self.counts = graph, self._shared.counts

    @contextlib.asynccontextmanager
    async def open(self, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        """Open a fresh environment, closed on exit. In a simulation whose environment is not isolated, writes are blocked."""
        async with self._around(simulation, None) as environment:
            yield environment

    @contextlib.asynccontextmanager
    async def fork(self, snapshot: Snapshot, *, simulation: bool) -> AsyncIterator[ToyEnvironment]:
        """Open another environment at a snapshot, whichever environment of this factory took it, closed or broken since or not.

        It has no snapshots yet. Raises EnvironmentFailure if the snapshot is gone.
        """
        if snapshot.id not in self._shared.snapshots:
            raise EnvironmentFailure(f"snapshot {snapshot.id!r} is not of these environments, or was dropped: return by another route")
        snapshots = self._shared.snapshots[snapshot.id]
        self.counts.forks += 1
        await self._shared.pause("fork")
        async with self._around(simulation, snapshots) as environment:
            yield environment

    def has(self, snapshot: Snapshot) -> bool:
        """Return whether a snapshot can still be forked."""
        return snapshot.id in self._shared.snapshots

    def drop(self, snapshot: Snapshot) -> None:
        """Drop a snapshot that no caller will return to."""
        self._shared.snapshots.pop(snapshot.id, None)

    @contextlib.asynccontextmanager
    async def _around(self, simulation: bool, at: ToySnapshot | None) -> AsyncIterator[ToyEnvironment]:
        self.counts.opened += 1
        self.counts.most_live = max(self.counts.most_live, self.counts.live)
        environment = ToyEnvironment(self._shared, simulation=simulation, at=at)
        try:
            yield environment
        finally:
            await environment.close()
