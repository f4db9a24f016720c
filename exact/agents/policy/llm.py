"""A policy that asks a chat model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from exact.action import ActionSpace
from exact.agents.parse import Chosen, parse_action
from exact.config import PolicyConfig
from exact.context import Context, Proposal
from exact.models.ask import ask
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.prompts.library import render
from exact.reflection.lesson import action_label


class LLMPolicy:
    """Draws answers and counts what they agree on: an action's prior is its share of the answers that parse.

    The prompt is `policy`. Two answers agree when their actions have the same key.
    """

    def __init__(self, model: ChatModel, config: PolicyConfig, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        """`sampling` says how answers are drawn; their number is `config.samples`."""
        self._model, self._config = model, config
        self._sampling = msgspec.structs.replace(sampling, n=config.samples)

    async def propose(self, context: Context, actions: ActionSpace, k: int) -> tuple[Proposal, ...]:
        """At most k distinct actions that the observation admits, most frequent first, then as first named. Raises ModelError."""
        request = self._request(context, actions)
        chosen = await ask(
            self._model, request, lambda text: parse_action(text, actions, context.observation, context.tried), seed=context.seed
        )
        return proposals(chosen, k, self._config.prior_floor)

    def _request(self, context: Context, actions: ActionSpace) -> ChatRequest:
        prompt = render("policy", context=context, actions=actions.describe(), label=action_label, history=self._config.history)
        screenshot = context.observation.screenshot
        images = (screenshot,) if self._config.images and screenshot is not None else ()
        return ChatRequest(
            messages=prompt.messages(*images),
            sampling=self._sampling,
            role="policy",
            node=context.node,
            prompt=prompt.id,
            draw=context.draw,
        )


def proposals(chosen: Sequence[Chosen], k: int, floor: float) -> tuple[Proposal, ...]:
    """The k most frequent actions with their shares as priors, none below `floor` (or 1/k where that is less), summing to 1.

    An action's rationale is the thought of the first answer that named it.
    """
    first: dict[str, Chosen] = {}
    count: dict[str, int] = {}
    for answer in chosen:
        first.setdefault(answer.action.key, answer)
        count[answer.action.key] = count.get(answer.action.key, 0) + 1
    keys = sorted(count, key=lambda key: -count[key])[:k]
    priors = floored([count[key] for key in keys], floor)
    return tuple(
        Proposal(action=first[key].action, prior=prior, rationale=first[key].thought) for key, prior in zip(keys, priors, strict=True)
    )


def floored(weights: Sequence[float], floor: float) -> list[float]:
    """Probabilities in proportion to positive weights, except that those which would lie below `floor` are at it."""
    least = min(floor, 1 / len(weights))
    low: set[int] = set()
    while True:
        rest = sum(weight for i, weight in enumerate(weights) if i not in low)
        scale = (1 - least * len(low)) / rest if rest else 0.0
        below = {i for i, weight in enumerate(weights) if i not in low and weight * scale < least}
        if not below:
            return [least if i in low else weight * scale for i, weight in enumerate(weights)]
        low |= below
