"""Choice of the proposals that become children, and the temperature of their priors."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from exact.context import Proposal

MakeGenerator = Callable[[], random.Random]
"""Function that makes the random generator, called only if one is needed."""
Candidates = Callable[[Sequence[Proposal], int, MakeGenerator], tuple[Proposal, ...]]
"""Function that returns at most k of the proposals, with priors that sum to 1."""


def best(proposals: Sequence[Proposal], k: int, make_generator: MakeGenerator) -> tuple[Proposal, ...]:
    """Return the k proposals with the highest priors."""
    if len(proposals) <= k:
        return tuple(proposals)
    retained = sorted(range(len(proposals)), key=lambda i: (-proposals[i].prior, i))[:k]
    return _scaled([proposals[i] for i in sorted(retained)])


def sampled(proposals: Sequence[Proposal], k: int, make_generator: MakeGenerator) -> tuple[Proposal, ...]:
    """Return k proposals drawn without replacement, each by its prior (Efraimidis and Spirakis 2006)."""
    rng = make_generator()
    keys = [rng.random() ** (1.0 / p.prior) if p.prior > 0 else -rng.random() for p in proposals]
    retained = sorted(range(len(proposals)), key=lambda i: (-keys[i], i))[:k]
    return _scaled([proposals[i] for i in sorted(retained)])


def tempered(proposals: Sequence[Proposal], temperature: float) -> tuple[Proposal, ...]:
    """Return the proposals with priors raised to the power 1 / temperature: below 1 sharper, above 1 flatter.

    Raises ValueError if the temperature is not above 0.
    """
    if temperature == 1.0:
        return tuple(proposals)
    if temperature <= 0:
        raise ValueError(f"a prior temperature must be above 0, not {temperature}")
    power = 1.0 / temperature
    priors = [p.prior**power for p in proposals]
    if proposals and not any(priors) and (top := max(p.prior for p in proposals)) > 0:  # all are too small for a float
        priors = [(p.prior / top) ** power for p in proposals]
    return _scaled([msgspec.structs.replace(p, prior=prior) for p, prior in zip(proposals, priors, strict=True)])


def _scaled(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    total = sum(p.prior for p in proposals)
    if total <= 0:
        return tuple(msgspec.structs.replace(p, prior=1.0 / len(proposals)) for p in proposals)
    return tuple(msgspec.structs.replace(p, prior=p.prior / total) for p in proposals)
