"""A policy that knows nothing: the baseline under every other."""

from __future__ import annotations

import random

from exact.action import ActionSpace
from exact.agents.builtin.judge.candidates import candidates
from exact.agents.builtin.judge.situation import situation
from exact.context import Context, Proposal


class RandomPolicy:
    """Draws uniformly among the built-in agent's candidates; the draw is keyed by (seed, node, draw), so a run can be repeated."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """At most k distinct actions with equal priors, in the order drawn. Empty where nothing can be done."""
        refused = {step.action.key for step in context.tried}
        at = situation(context, context.history)
        some = [action for action in candidates(at, actions) if action.key not in refused]
        drawn = random.Random(f"{context.seed}/{context.node}" + (f"/{context.draw}" if context.draw else "")).sample(
            some, min(k, len(some))
        )
        return tuple(Proposal(action=action, prior=1 / len(drawn), rationale="drawn at random") for action in drawn)
