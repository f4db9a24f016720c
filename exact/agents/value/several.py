"""Value functions made of value functions: a panel, and a cheap one that calls a dear one in where it matters."""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Mapping

import msgspec

from exact.agents.base import ValueFunction
from exact.context import Context, Evaluation


class EnsembleValue:
    """All members judge; the value is the mean of theirs, and `between` their spread."""

    def __init__(self, members: Mapping[str, ValueFunction]) -> None:
        """By name, at least one."""
        self._members = dict(members)

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError where a member does: a mean over those that answered would be another judge."""
        found = await asyncio.gather(*(member.evaluate(context) for member in self._members.values()))
        values = [each.value for each in found]
        samples = tuple(sample for each in found for sample in (each.samples or (each.value,)))
        mean = statistics.fmean(values)
        named = dict(zip(self._members, found, strict=True))
        return Evaluation(
            value=mean,
            rationale=min(found, key=lambda each: abs(each.value - mean)).rationale,
            samples=samples,
            disagreement=statistics.pstdev(samples),
            order_effect=statistics.fmean(each.order_effect for each in found),
            within=statistics.fmean(each.within**2 for each in found) ** 0.5,
            between=statistics.pstdev(values),
            arguments=tuple(argument for each in found for argument in each.arguments),
            judges=tuple(f"{name}: {each.value:.2f}, {each.rationale}" for name, each in named.items()),
        )


class CascadeValue:
    """The cheap value function everywhere; the dear one at ends, at confirmations, and where the search asks for a state again.

    A search asks again about states that matter: ends that are visited again, and front-runners while its workers would be idle
    (`search.collision: resample`). The search takes the mean over all judgements of a state.
    """

    def __init__(self, cheap: ValueFunction, dear: ValueFunction) -> None:
        self._cheap, self._dear = cheap, dear

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError."""
        if context.terminated or context.confirms:
            return await self._dear.evaluate(context)
        if context.draw > 0:  # the cheap one had the first draw
            return await self._dear.evaluate(msgspec.structs.replace(context, draw=context.draw - 1))
        return await self._cheap.evaluate(context)
