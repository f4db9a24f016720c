"""Pairwise comparison of states by a chat model, in both orders of presentation."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from exact.agents import form
from exact.agents.parse import parse_preference
from exact.agents.request import chat_request, view_state
from exact.config import ValueConfig, ViewConfig
from exact.context import Context
from exact.models.base import ChatModel, ChatRequest, Sampling
from exact.models.retry import all_results
from exact.prompts.ask import ask
from exact.prompts.library import render_prompt
from exact.reflection.record import action_label
from exact.views.view import CHARACTERS

PRIOR = 0.5
"""Wins and losses added to each pair in advance, so that one answer decides nothing."""


class LLMComparator:
    """Asks a model about every pair of states in both orders, and fits Bradley-Terry strengths to the answers."""

    def __init__(self, model: ChatModel, config: ValueConfig, view: ViewConfig = ViewConfig(), *, sampling: Sampling = Sampling()) -> None:  # noqa: B008 (frozen)
        self._model, self._config, self._view, self._sampling = model, config, view, sampling

    async def compare(self, contexts: Sequence[Context]) -> tuple[float, ...]:
        """Return each state's strength, in order. Strengths sum to 1.

        Raises ModelError.
        """
        if len(contexts) == 1:
            return (1.0,)
        return bradley_terry(await self.wins(contexts))

    async def wins(self, contexts: Sequence[Context]) -> list[list[float]]:
        """Return a matrix of wins: entry [i][j] is how often state i was preferred to state j.

        Each order of presentation counts as one vote. Raises ModelError.
        """
        pairs = list(itertools.permutations(range(len(contexts)), 2))
        shares = await all_results([self._share(contexts[i], contexts[j]) for i, j in pairs])
        wins = [[0.0] * len(contexts) for _ in contexts]
        for (i, j), share in zip(pairs, shares, strict=True):
            wins[i][j] += share
            wins[j][i] += 1 - share
        return wins

    async def _share(self, first: Context, second: Context) -> float:
        """Return the share of answers that prefer the first state."""
        return statistics.fmean(await ask(self._model, self._request(first, second), parse_preference, seed=first.seed))

    def _request(self, first: Context, second: Context) -> ChatRequest:
        """Return the request that shows both states, each in half of the characters, after the task's own pictures."""
        config, view, model = self._config, self._view, self._model.name
        one, other = (view_state(context, view, model, characters=CHARACTERS // 2) for context in (first, second))
        own = len(one.images) - (one.screen != (0, 0))
        pictures = (one.images[-1], other.images[-1]) if (0, 0) not in (one.screen, other.screen) else ()
        prompt = render_prompt(
            "compare", first=one.context, second=other.context, label=action_label, history=view.history, pictures=len(pictures)
        )  # fmt: skip
        return chat_request(
            prompt, (*one.images[:own], *pictures), self._sampling, role=config.role, samples=config.samples, context=first,
            left_out=tuple(dict.fromkeys(one.left_out + other.left_out)), form=form.PREFERENCE,
        )  # fmt: skip


def bradley_terry(wins: Sequence[Sequence[float]], *, prior: float = PRIOR, rounds: int = 200) -> tuple[float, ...]:
    """Return strengths p, summing to 1, such that i beats j with probability p_i / (p_i + p_j).

    `wins[i][j]` is how often i beat j and may be fractional. `prior` is added to every pair in both directions, so strengths are above 0.
    The fit is Hunter's MM iteration. Source: Hunter, MM algorithms for generalized Bradley-Terry models (2004).
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
