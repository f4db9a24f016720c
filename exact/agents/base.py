"""The contracts of an agent's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal


class Policy(Protocol):
    """Proposes actions for a state."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """At most k distinct actions, best first; priors sum to 1. Raises ModelError; never invents an action."""
        ...


class ValueFunction(Protocol):
    """Judges states."""

    async def evaluate(self, context: Context) -> Evaluation:
        """The estimated probability that the task succeeds. Raises ModelError; never invents a value."""
        ...


class Comparator(Protocol):
    """Judges states against each other."""

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Each state's share of the votes, in order; they sum to 1. Raises ModelError; never invents a vote."""
        ...
