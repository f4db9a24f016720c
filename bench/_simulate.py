"""Search on a simulated clock: many workers, calls of configured duration, no waiting.

A game answers at once; the schedule sets the duration of each answer. Everything is keyed, so that a run is the same for a seed.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from exact.context import Evaluation, Proposal
from exact.search.base import Algorithm, Done, Need, Proposed, Result, Selection, Stepped, Valued
from exact.search.tree import Node, Tree


class Game(Protocol):
    """An environment, a policy and a judge that answer at once. States are hashable names; actions are indices into `proposals`."""

    start: str

    def step(self, state: str, action: str) -> tuple[str, bool]:
        """Return the next state, and whether the episode has ended."""
        ...

    def proposals(self, state: str, k: int) -> tuple[Proposal, ...]: ...

    def value(self, state: str, draw: int) -> float: ...


Latency = Callable[[Need, Selection, int], float]
"""Seconds that a need takes: what, for which selection, at which depth below the first root."""


@dataclass
class Simulation:
    """One search over one game."""

    game: Game
    algorithm: Algorithm
    latency: Latency
    workers: int = 1
    seed: int = 0
    now: float = 0.0
    calls: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = Tree(seed=self.seed)
        self.tree.root.fingerprint = self.game.start
        self._events: list[tuple[float, int, Selection, Need]] = []
        self._made = 0

    def search(self) -> float:
        """Search until done, and return the seconds taken."""
        began, idle, done = self.now, self.workers, False
        while True:
            while idle and not done:
                answer = self.algorithm.ask(self.tree)
                if isinstance(answer, Selection):
                    idle -= 1
                    self._begin(answer)
                else:
                    done = isinstance(answer, Done)
                    break
            if not self._events:
                return self.now - began
            self.now, _, selection, need = heapq.heappop(self._events)
            self.algorithm.tell(self.tree, selection, self._result(selection, need))
            if selection.id not in self.tree.open:
                idle += 1
            elif need == "step" or not selection.together:
                self._begin(selection)
            if not done:
                continue

    def decide(self) -> str:
        """Return the action that would be committed."""
        return self.tree.root.edges[self.algorithm.decide(self.tree).edges[0]].action.key

    def _begin(self, selection: Selection) -> None:
        """Set off what a selection needs next: all of it where it is asked for together."""
        left = self.tree.open[selection.id].left
        for need in left if selection.together and left[0] != "step" else left[:1]:
            self._made += 1
            self.calls[need] = self.calls.get(need, 0) + 1
            depth = self.tree.nodes[selection.node].depth
            heapq.heappush(self._events, (self.now + self.latency(need, selection, depth), self._made, selection, need))

    def _result(self, selection: Selection, need: Need) -> Result:
        work = self.tree.open[selection.id]
        node = self.tree.nodes[selection.node]
        if need == "step":
            assert selection.edge is not None
            state, ended = self.game.step(self._state(node), node.edges[selection.edge].action.key)
            return Stepped(fingerprint=state, terminated=ended)
        assert work.target is not None
        state = self._state(work.target)
        if need == "value":
            return Valued(evaluation=Evaluation(value=self.game.value(state, selection.draw)))
        return Proposed(proposals=self.game.proposals(state, selection.k))

    def _state(self, node: Node) -> str:
        return node.fingerprint
