"""The contracts of an agent's parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.models.together import all_results
from exact.search.rules.draw import generator


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


@runtime_checkable
class BatchValueFunction(ValueFunction, Protocol):
    """Can judge several states in one question."""

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """An estimate for each state, in order; they are siblings: they differ in their last step alone. Raises ModelError."""
        ...


async def evaluate_all(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """An estimate for each of some siblings, in order: together where the value function can, else each on its own, all at once.

    Raises ModelError.
    """
    if isinstance(value, BatchValueFunction) and len(contexts) > 1:
        return await value.evaluate_all(contexts)
    return await evaluate_each(value, contexts)


async def evaluate_each(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """An estimate for each state on its own, all at once. Raises ModelError."""
    return tuple(await all_results([value.evaluate(context) for context in contexts]))


class Comparator(Protocol):
    """Judges states against each other."""

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Each state's share of the votes, in order; they sum to 1. Raises ModelError; never invents a vote."""
        ...


async def sample(policy: Policy, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
    """One of at most k proposals, drawn by their priors, as a proposal of prior 1; nothing where the policy proposes nothing.

    Keyed by (seed, node, draw), so it can be repeated. The policy is asked anew for every k draws: k draws cost one call, and further
    ones may bring other actions. Raises ModelError.
    """
    proposals = await policy.propose(msgspec.structs.replace(context, draw=context.draw // k), actions, k)
    if not proposals:
        return ()
    dice = generator(context.seed, "sample", context.node, context.draw)
    [drawn] = dice.choices(proposals, [proposal.prior for proposal in proposals])
    return (msgspec.structs.replace(drawn, prior=1.0),)
