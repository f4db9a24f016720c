"""The lexical policy of the built-in agent, which is not a language model: candidate actions ranked by similarity to the instruction."""

from __future__ import annotations

import math

from exact.action import Action, ActionSpace
from exact.agents.builtin.judge.candidates import candidate_actions
from exact.agents.builtin.judge.recall import reflection_adjustment
from exact.agents.builtin.judge.score import score_action
from exact.agents.builtin.judge.situation import Situation, read_situation
from exact.context import Context, Proposal

TEMPERATURE = 0.12
"""Softmax temperature from scores in [0, 1] to priors."""


class LexicalPolicy:
    """Ranks the candidate actions of a state. Uses no model and no random numbers."""

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most `k` distinct actions, best first, with priors that sum to 1.

        Equal scores are in document order. Empty if no action is possible.
        """
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
        change, reflection = reflection_adjustment(context, "policy", action, context.observation, context.history)
        return scored.score + change, action, scored.reason + (f"; {reflection}" if reflection else "")
