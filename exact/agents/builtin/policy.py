"""The policy of the built-in agent, which is not a language model: candidates ranked by likeness to the instruction."""

from __future__ import annotations

import math

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.recall import reflection_adjustment
from exact.agents.builtin.judge.score import score_action
from exact.agents.builtin.judge.situation import Situation, read_situation
from exact.context import Context, Proposal

TEMPERATURE = 0.12
"""Of the softmax from scores in [0, 1] to priors."""


class BuiltinPolicy:
    """Ranks the candidates of a state; needs no model and draws no random number."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """At most k distinct actions, best first; priors sum to 1. Equals stand in document order. Empty: nothing can be done."""
        situation = read_situation(context, context.history, context.tried)
        refused = {step.action.key for step in context.tried}
        ranked = sorted(
            (self._score(context, situation, action) for action in candidate_actions(situation, actions) if action.key not in refused),
            key=lambda scored: -round(scored[0], 6),
        )[:k]
        if not ranked:
            return ()
        weights = [math.exp((score - ranked[0][0]) / TEMPERATURE) for score, _, _ in ranked]
        total = sum(weights)
        return tuple(
            Proposal(action=action, prior=weight / total, rationale=f"{score:.2f}: {reason}")
            for weight, (score, action, reason) in zip(weights, ranked, strict=True)
        )

    def _score(self, context: Context, situation: Situation, action: Action) -> tuple[float, Action, str]:
        scored = score_action(situation, action)
        change, lesson = reflection_adjustment(context, "policy", action, context.observation, context.history)
        return scored.score + change, action, scored.reason + (f"; {lesson}" if lesson else "")
