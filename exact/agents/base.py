"""Contracts of an agent's components."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from statistics import fmean
from typing import Protocol, runtime_checkable

import msgspec

from exact.action import Action, ActionSpace
from exact.context import Context, Evaluation, Proposal
from exact.errors import ActionError
from exact.models.retry import all_results
from exact.parts import Misfit, awaited, calling, expect, misfit
from exact.search.rules.backup import generator


class Policy(Protocol):
    """Proposes actions for a state."""

    async def propose(
        self, context: Context, actions: ActionSpace, k: int
    ) -> Sequence[Proposal | Action | str | tuple[Action | str, float]]:
        """Return at most `k` distinct actions, best first. Their priors are scaled to sum to 1.

        An action is a Proposal, an Action, its text such as `click [3]`, or a pair of one of the last two and its prior. One without a
        prior has the mean of the others' priors. Raises ModelError. A policy never invents an action.
        """
        ...


class ValueFunction(Protocol):
    """Estimates how likely a state leads to success."""

    async def evaluate(self, context: Context) -> Evaluation | float:
        """Return the estimated probability that the task succeeds, in [0, 1].

        Raises ModelError. A value function never invents a value.
        """
        ...


@runtime_checkable
class BatchValueFunction(ValueFunction, Protocol):
    """A value function that can evaluate several states in one request."""

    async def evaluate_all(self, contexts: Sequence[Context]) -> Sequence[Evaluation | float]:
        """Return an evaluation of each state, in order.

        The states are siblings: they differ only in their last step. Raises ModelError.
        """
        ...


async def propose(policy: Policy, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
    """Return a policy's proposals, with priors that sum to 1. Raises ModelError, and PartError if they are not what `Policy` says."""
    with calling("policy.propose", policy):
        found = await awaited(policy.propose(context, actions, k))
        if isinstance(found, str | bytes | Mapping) or not isinstance(found, Iterable):
            raise misfit(found, _PROPOSALS)
        given = [_weighted(each, actions) for each in found]
        priors = [prior for _, prior in given if prior is not None]
        usual = fmean(priors) if priors else 1.0
        return _normalised([_proposal(each, usual if prior is None else prior) for each, prior in given])


_PROPOSALS = "a list of Proposals, texts of actions, or pairs of a text and its prior"


def _weighted(given: object, actions: ActionSpace) -> tuple[Proposal | Action, float | None]:
    """Return what a policy gave for one action, with its prior if it has one. Raises Misfit."""
    found, prior = (given, None) if not isinstance(given, tuple | list) or len(given) != 2 else given
    if isinstance(given, Proposal):
        found = expect(given, Proposal)
        action, prior = given.action, given.prior
    elif isinstance(found, str):
        try:
            found = action = actions.parse(found)
        except ActionError as error:
            raise Misfit(f"proposed {found!r}: {error}") from error
    elif isinstance(found, Action):
        action = expect(found, Action)
    else:
        raise misfit(given, _PROPOSALS)
    if action.name not in actions.verbs:
        raise Misfit(f"proposed {action.key!r}, which is no action here: expected one of {', '.join(actions.verbs)}")
    if prior is None:
        return found, None
    if not 0 <= (weight := float(prior) if isinstance(prior, Real) else math.nan) < math.inf:
        raise Misfit(f"gave {action.key!r} the prior {prior!r}: expected a number of at least 0")
    return found, weight


def _proposal(given: Proposal | Action, prior: float) -> Proposal:
    return given if isinstance(given, Proposal) else Proposal(action=given, prior=prior)


def _normalised(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Return proposals with priors that sum to 1: in proportion to those given, which are finite and at least 0, or equal if all are 0."""
    total = math.fsum(proposal.prior for proposal in proposals)
    if abs(total - 1.0) <= 1e-6:
        return tuple(proposals)
    equal = 1 / len(proposals) if proposals else 0.0
    return tuple(msgspec.structs.replace(each, prior=each.prior / total if total else equal) for each in proposals)


async def evaluate(value: ValueFunction, context: Context) -> Evaluation:
    """Return the evaluation of a state. Raises ModelError, and PartError if it is not what `ValueFunction` says."""
    with calling("value.evaluate", value):
        return _evaluation(await awaited(value.evaluate(context)))


def _evaluation(found: object) -> Evaluation:
    """Return what a value function gave as an Evaluation. Raises Misfit."""
    if not isinstance(found, Evaluation):
        if not isinstance(found, Real):
            raise misfit(found, "a number in [0, 1] or an Evaluation")
        found = Evaluation(value=float(found))
    if not 0 <= expect(found, Evaluation).value <= 1:  # nor NaN
        raise Misfit(f"returned the value {found.value}: expected one in [0, 1]")
    return found


async def evaluate_all(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """Return an evaluation of each sibling state, in order.

    Siblings are evaluated in one batch if the value function supports it, otherwise each in its own concurrent request. Raises ModelError
    and PartError.
    """
    if not isinstance(value, BatchValueFunction) or len(contexts) <= 1:
        return await evaluate_each(value, contexts)
    with calling("value.evaluate_all", value):
        found = await awaited(value.evaluate_all(contexts))
        if not isinstance(found, tuple | list) or len(found) != len(contexts):
            raise misfit(found, f"a list of {len(contexts)} evaluations, one for each state")
        return tuple(map(_evaluation, found))


async def evaluate_each(value: ValueFunction, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
    """Return an evaluation of each state, in order, from concurrent requests. Raises ModelError and PartError."""
    return tuple(await all_results([evaluate(value, context) for context in contexts]))


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
    Raises ModelError and PartError.
    """
    proposals = await propose(policy, msgspec.structs.replace(context, draw=context.draw // k), actions, k)
    if not proposals:
        return ()
    dice = generator(context.seed, "sample", context.node, context.draw)
    [drawn] = dice.choices(proposals, [proposal.prior for proposal in proposals])
    return (msgspec.structs.replace(drawn, prior=1.0),)
