"""Contracts of an agent's components."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import msgspec

from exact.action import ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.models.retry import all_results
from exact.search.rules.backup import generator


class Policy(Protocol):
    """Proposes actions for a state."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> Sequence[Proposal]:
        """Return at most `k` distinct actions, best first. Their priors are scaled to sum to 1.

        Raises ModelError. A policy never invents an action.
        """
        ...


class ValueFunction(Protocol):
    """Estimates how likely a state leads to success."""

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the estimated probability that the task succeeds.

        Raises ModelError. A value function never invents a value.
        """
        ...


@runtime_checkable
class BatchValueFunction(ValueFunction, Protocol):
    """A value function that can evaluate several states in one request."""

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return an evaluation of each state, in order.

        The states are siblings: they differ only in their last step. Raises ModelError.
        """
        ...


async def evaluate_all(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """Return an evaluation of each sibling state, in order.

    Siblings are evaluated in one batch if the value function supports it, otherwise each in its own concurrent request. Raises ModelError.
    """
    if isinstance(value, BatchValueFunction) and len(contexts) > 1:
        return await value.evaluate_all(contexts)
    return await evaluate_each(value, contexts)


async def evaluate_each(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """Return an evaluation of each state, in order, from concurrent requests.

    Raises ModelError.
    """
    return tuple(await all_results([value.evaluate(context) for context in contexts]))


class Comparator(Protocol):
    """Compares states with each other."""

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Return each state's share of the votes, in order. Shares sum to 1.

        Raises ModelError. A comparator never invents a vote.
        """
        ...


async def sample(policy: Policy, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
    """Return one of at most `k` proposals, drawn by their priors, with prior 1. Return nothing if the policy proposes nothing.

    Policies themselves propose the likeliest actions; searches that sample call this function. The draw is keyed by (seed, node, draw), so
    it is repeatable. The policy is called again for every `k` draws: `k` draws cost one call, and later draws may return other actions.
    Raises ModelError.
    """
    proposals = await policy.propose(msgspec.structs.replace(context, draw=context.draw // k), actions, k)
    if not proposals:
        return ()
    dice = generator(context.seed, "sample", context.node, context.draw)
    [drawn] = dice.choices(proposals, [proposal.prior for proposal in proposals])
    return (msgspec.structs.replace(drawn, prior=1.0),)
