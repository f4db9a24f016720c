"""Factories of toy environments: real contracts, no browser, faults on demand.

environments = ToyFactory(chain(3))
async with environments.open(simulation=True) as environment:
    observation = await environment.reset(toy_task("chain"))
    transition = await environment.step(environment.actions.parse('go "on"'))
    async with environments.fork(await environment.snapshot(), simulation=True) as other:
        ...

A decision tree as a toy environment with agents: thin layers over `decision` and `noise`, made state by state.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Literal

from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.environments.base import Snapshot
from exact.environments.toy.agents import NoisyJudge, NoisyPolicy
from exact.environments.toy.decision import DecisionTree
from exact.environments.toy.environment import TOY_ACTIONS, Counts, FactoryState, Faults, Operation, ToyEnvironment, ToySnapshot
from exact.environments.toy.graph import ToyEdge, ToyGraph, ToyState, state_of
from exact.environments.toy.known import (
    WORLDS,
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
from exact.errors import EnvironmentFailure, UsageError

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


class DecisionStates(Mapping[str, ToyState]):
    """States of a decision tree by name. Action i is the link `i`; a state looks like its value."""

    def __init__(self, tree: DecisionTree) -> None:
        self._tree = tree

    def __getitem__(self, state: str) -> ToyState:
        if state not in self:
            raise KeyError(state)
        tree = self._tree
        if tree.is_end(state):
            return ToyState(reward=tree.outcome(state))
        edges = {str(action): ToyEdge(to=child) for action, child in enumerate(tree.children(state))}
        return ToyState(text=f"At {state or 'the start'}", edges=edges, looks=tree.value(state))

    def __contains__(self, state: object) -> bool:
        if not isinstance(state, str) or self._tree.level(state) > self._tree.depth:
            return False
        valid = {str(action) for action in range(self._tree.branching)}
        return not state or all(step in valid for step in state.split("."))

    def __iter__(self) -> Iterator[str]:
        stack = [""]
        while stack:
            state = stack.pop()
            yield state
            stack.extend(reversed(self._tree.children(state)))

    def __len__(self) -> int:
        return sum(self._tree.branching**level for level in range(self._tree.depth + 1))


class DecisionGraph(ToyGraph, frozen=True, kw_only=True):
    """Toy graph whose states are a tree's: nothing to validate, nothing slips."""

    def __post_init__(self) -> None:
        """Skip validation: the states are made from the tree."""

    @property
    def deterministic(self) -> bool:
        return True


def decision_graph(tree: DecisionTree) -> ToyGraph:
    """Return the tree as a toy graph. Known answer: the links of `tree.sure`, one after another, win: 1.0."""
    return DecisionGraph(name="tree", instruction="Reach an end that succeeds.", start="", states=DecisionStates(tree))


class DecisionPolicy:
    """Noisy policy as an agent's policy."""

    def __init__(self, policy: NoisyPolicy) -> None:
        self._policy, self._graph = policy, decision_graph(policy.tree)

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most k links, likeliest first, without refused ones. Priors sum to 1."""
        refused = {taken.action.key for taken in context.tried}
        priors = self._policy.priors(state_of(self._graph, context.observation))
        left = [(action, prior) for i, prior in priors if (action := actions.action("go", str(i))).key not in refused]
        best = sorted(left, key=lambda pair: -pair[1])[:k]
        total = sum(prior for _, prior in best)
        return tuple(Proposal(action=action, prior=prior / total, rationale="a link of this state") for action, prior in best)


class DecisionValue:
    """Noisy judge as an agent's value function."""

    def __init__(self, judge: NoisyJudge) -> None:
        self._judge, self._graph = judge, decision_graph(judge.tree)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation of the context's draw; for a terminated node, that of its end.

        A confirming evaluation is drawn separately.
        """
        state = state_of(self._graph, context.observation)
        if context.terminated:
            state = self._after(state, context)
        value = self._judge.judgement(state, -1 - context.draw if context.confirms else context.draw)
        return Evaluation(value=value, rationale=f"{state or 'the start'} looks like {value:.2f}", samples=(value,))

    def _after(self, state: str, context: Context) -> str:
        link = str(context.history[-1].action.args[0])
        edge = self._graph.states[state].edges.get(link)
        if edge is None:
            raise UsageError(f"{context.history[-1].action} ended an episode in the tree's state {state!r}: no answer counts there")
        return edge.to
