"""Rank states against each other by a chat model, pair by pair, in both orders."""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections.abc import Sequence

import msgspec

from exact.agents.parse import parse_better
from exact.agents.request import key
from exact.config import ValueConfig
from exact.context import Context
from exact.models.ask import ask
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.prompts.library import render
from exact.reflection.lesson import action_label

PRIOR = 0.5
"""Of a win and of a loss, counted for each pair beforehand, so that one answer proves nothing."""


class LLMComparator:
    """Asks about every pair, each in both orders, and fits Bradley-Terry strengths to the answers."""

    def __init__(self, model: ChatModel, config: ValueConfig, *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._config = model, config
        self._sampling = msgspec.structs.replace(sampling, n=config.samples)

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Each state's strength, in order; they sum to 1. Raises ModelError."""
        if len(contexts) == 1:
            return (1.0,)
        pairs = list(itertools.permutations(range(len(contexts)), 2))
        shares = await asyncio.gather(*(self._share(contexts[i], contexts[j]) for i, j in pairs))
        wins = [[0.0] * len(contexts) for _ in contexts]
        for (i, j), share in zip(pairs, shares, strict=True):
            wins[i][j] += share
            wins[j][i] += 1 - share
        return bradley_terry(wins)

    async def _share(self, first: Context, second: Context) -> float:
        """How often the first is held to be better."""
        prompt = render("compare", first=first, second=second, label=action_label, history=self._config.history)
        request = ChatRequest(
            messages=prompt.messages(), sampling=self._sampling, role=self._config.role, node=first.node, prompt=prompt.id, draw=key(first)
        )  # fmt: skip
        return statistics.fmean(await ask(self._model, request, parse_better, seed=first.seed))


def bradley_terry(wins: Sequence[Sequence[float]], *, prior: float = PRIOR, rounds: int = 200) -> tuple[float, ...]:
    """Strengths p, summing to 1, under which i beats j with probability p_i / (p_i + p_j), by Hunter's MM iteration.

    wins[i][j]: how often i beat j; parts count. prior: added to every pair both ways, so that strengths are above 0.
    Source: Hunter, MM algorithms for generalized Bradley-Terry models (2004).
    """
    size = len(wins)
    count = [[wins[i][j] + prior if i != j else 0.0 for j in range(size)] for i in range(size)]
    strength = [1 / size] * size
    for _ in range(rounds):
        new = []
        for i in range(size):
            met = sum((count[i][j] + count[j][i]) / (strength[i] + strength[j]) for j in range(size) if j != i)
            new.append(sum(count[i]) / met)
        total = sum(new)
        new = [each / total for each in new]
        if max(abs(a - b) for a, b in zip(new, strength, strict=True)) < 1e-9:
            return tuple(new)
        strength = new
    return tuple(strength)
