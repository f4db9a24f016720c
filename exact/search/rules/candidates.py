"""Which of a policy's proposals become children, and how sure their priors are."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from exact.context import Proposal

Dice = Callable[[], random.Random]
"""Makes the generator to draw with, where one is needed."""
Candidates = Callable[[Sequence[Proposal], int, Dice], tuple[Proposal, ...]]
"""At most k of the proposals, priors summing to 1 again."""


def best(proposals: Sequence[Proposal], k: int, dice: Dice) -> tuple[Proposal, ...]:
    """The k likeliest."""
    if len(proposals) <= k:
        return tuple(proposals)
    kept = sorted(range(len(proposals)), key=lambda i: (-proposals[i].prior, i))[:k]
    return _scaled([proposals[i] for i in sorted(kept)])


def sampled(proposals: Sequence[Proposal], k: int, dice: Dice) -> tuple[Proposal, ...]:
    """k drawn without replacement, each by its prior (Efraimidis and Spirakis 2006)."""
    drawn = dice()
    keys = [drawn.random() ** (1.0 / p.prior) if p.prior > 0 else -drawn.random() for p in proposals]
    return _kept(proposals, keys, k)


def uniform(proposals: Sequence[Proposal], k: int, dice: Dice) -> tuple[Proposal, ...]:
    """k drawn without replacement, all alike."""
    drawn = dice()
    return _kept(proposals, [drawn.random() for _ in proposals], k)


def tempered(proposals: Sequence[Proposal], temperature: float) -> tuple[Proposal, ...]:
    """Priors to the power 1 / temperature: below 1 surer, above 1 flatter. Raises ValueError unless it is above 0."""
    if temperature == 1.0:
        return tuple(proposals)
    if temperature <= 0:
        raise ValueError(f"a prior temperature must be above 0, not {temperature}")
    return _scaled([msgspec.structs.replace(p, prior=p.prior ** (1.0 / temperature)) for p in proposals])


def _kept(proposals: Sequence[Proposal], keys: Sequence[float], k: int) -> tuple[Proposal, ...]:
    kept = sorted(range(len(proposals)), key=lambda i: (-keys[i], i))[:k]
    return _scaled([proposals[i] for i in sorted(kept)])


def _scaled(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    total = sum(p.prior for p in proposals)
    if total <= 0:
        return tuple(msgspec.structs.replace(p, prior=1.0 / len(proposals)) for p in proposals)
    return tuple(msgspec.structs.replace(p, prior=p.prior / total) for p in proposals)
