"""A simulated model that judges recorded states: what kinds of value functions make of one and the same belief, and what they cost.

Its belief about a state is the built-in value function's value, shifted by a noise of its own. Written reasoning adds noise to each sample,
and a debate shifts the belief towards the argument that is read last. A token's probability is the belief itself. So rows that are asked
through this model differ by how a kind asks, not by how well a model judges.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

from exact.agents.value.samples import SCALES
from exact.models.base import ChatAnswer, ChatRequest, Choice, Price, Text, TokenChance, Usage
from exact.models.tokens import count

BELIEF, SAMPLE, LAST = 0.7, 1.0, 0.5
"""Standard deviations of the noise in a belief and in a sample, and the shift by what is read last, in log-odds."""
PRICE = Price(input=2.5, output=10.0)
"""US dollars for a million tokens."""
REASONS = "The goal asks for this, and the state shows that. " * 6
"""What it writes before a grade, and as an argument: 60 words, half of what prompts allow."""


class SimulatedJudge:
    """A ChatModel that answers the prompts of value functions about states whose number is the request's node."""

    name, price = "simulated/judge", PRICE

    def __init__(self, values: Sequence[float]) -> None:
        """`values` has a value in [0, 1] for each state, by number."""
        self._beliefs = [_logit(value) + random.Random(f"belief {node}").gauss(0, BELIEF) for node, value in enumerate(values)]

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        text = "\n".join(part.text for message in request.messages for part in message.parts if isinstance(part, Text))
        belief = self._beliefs[request.node] + _order(text)
        choices = tuple(self._choice(request, text, belief, sample) for sample in range(request.sampling.n))
        read, written = count(text), sum(count(choice.text) for choice in choices)
        cost = (read * PRICE.input + written * PRICE.output) / 1e6
        usage = Usage(input_tokens=read, output_tokens=written, cost=cost)
        return ChatAnswer(choices=choices, usage=usage, model=self.name, raw="")

    async def close(self) -> None:
        """Do nothing: there is no connection."""

    def _choice(self, request: ChatRequest, text: str, belief: float, sample: int) -> Choice:
        if request.sampling.top_logprobs:
            yes = _probability(belief)
            listed = (TokenChance("yes", math.log(yes)), TokenChance("no", math.log(1 - yes)))
            return Choice(text="yes" if yes > 0.5 else "no", finish="length", top_logprobs=(listed,))
        if "Write your case." in text:
            return Choice(text=REASONS, finish="stop")
        dice = random.Random(f"{request.node} {request.role} {request.draw} {sample} {_order(text)}")
        value = _probability(belief + dice.gauss(0, SAMPLE))
        letter = min("ABCDE", key=lambda each: abs(SCALES["even"].value(each) - value))
        return Choice(text=f"{REASONS}\nVerdict: {letter}", finish="stop")


def _order(text: str) -> float:
    """Return the shift by the argument that is read last; 0 where there is no debate."""
    if "The debate:" not in text:
        return 0.0
    return -LAST if text.index("⟦the case for") < text.index("⟦the case against") else LAST


def _logit(value: float) -> float:
    held = min(0.98, max(0.02, value))
    return math.log(held / (1 - held))


def _probability(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))
