"""Priors from weighted actions, and the uniform random policy."""

from __future__ import annotations

import random
from collections.abc import Sequence

from exact.action import Action, ActionSpace, Parameter
from exact.agents.parse import ParsedAction
from exact.context import Context, Proposal


def merge_proposals(weighted: Sequence[tuple[ParsedAction, float]], k: int, floor: float = 0.02) -> tuple[Proposal, ...]:
    """Return the `k` heaviest actions as proposals, with priors in proportion to their weights.

    No prior is below `floor`, or 1/k if that is less. Weights are positive, and those of equal actions add up. An action's rationale is the
    thought of the first answer that named it.
    """
    first: dict[str, ParsedAction] = {}
    weight: dict[str, float] = {}
    for chosen, counts in weighted:
        first.setdefault(chosen.action.key, chosen)
        weight[chosen.action.key] = weight.get(chosen.action.key, 0.0) + counts
    keys = sorted(weight, key=lambda key: -weight[key])[:k]
    priors = floor_priors([weight[key] / weight[keys[0]] for key in keys], floor)
    return tuple(
        Proposal(action=first[key].action, prior=prior, rationale=first[key].thought) for key, prior in zip(keys, priors, strict=True)
    )


def floor_priors(weights: Sequence[float], floor: float) -> list[float]:
    """Return probabilities in proportion to weights, raised to at least `floor`. At least one weight is positive."""
    least = min(floor, 1 / len(weights))
    low: set[int] = set()
    while True:
        rest = sum(weight for i, weight in enumerate(weights) if i not in low)
        scale = (1 - least * len(low)) / rest if rest else 0.0
        below = {i for i, weight in enumerate(weights) if i not in low and weight * scale < least}
        if not below:
            return [least if i in low else weight * scale for i, weight in enumerate(weights)]
        low |= below


class RandomPolicy:
    """Draws uniformly from the built-in agent's candidates, or from the grammar if these only end the attempt.

    Keyed by (seed, node, draw), so a run is repeatable.
    """

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """Return at most `k` distinct actions with equal priors, in the order drawn. Empty if no action is possible."""
        from exact.agents.builtin.judge.candidates import candidate_actions  # a policy that asks a model does not load the built-in agent
        from exact.agents.builtin.judge.situation import read_situation

        refused = {step.action.key for step in context.tried}
        situation = read_situation(context, context.history)
        some = [action for action in candidate_actions(situation, actions) if action.key not in refused]
        if all(actions.is_final(action) for action in some):
            some = [action for action in _plain_actions(context, actions) if action.key not in refused] or some
        drawn = random.Random(f"{context.seed}/{context.node}" + (f"/{context.draw}" if context.draw else "")).sample(
            some, min(k, len(some))
        )
        return tuple(Proposal(action=action, prior=1 / len(drawn), rationale="drawn at random") for action in drawn)


def _plain_actions(context: Context, actions: ActionSpace) -> list[Action]:
    """Return an action for each verb without parameters that ends nothing, and one for each text that the state offers and a verb takes."""
    verbs = [verb for verb in actions.verbs.values() if not verb.final]
    offered = [element.name for element in context.observation.elements if element.role in ("option", "link", "button") and element.name]
    plain = [actions.action(verb.name) for verb in verbs if not verb.form]
    return plain + [actions.action(verb.name, text) for verb in verbs if verb.form == (Parameter.TEXT,) for text in dict.fromkeys(offered)]
