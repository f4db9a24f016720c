"""One action drawn from a policy: what a search means by `sample`. Policies themselves propose the likeliest."""

from __future__ import annotations

import msgspec

from exact.action import ActionSpace
from exact.agents.base import Policy
from exact.context import Context, Proposal
from exact.search.rules.draw import generator


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
