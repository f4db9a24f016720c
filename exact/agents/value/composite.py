"""Value functions made of value functions: a panel, and a cheap one that calls a dear one in where it matters."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from exact.agents.base import ValueFunction, evaluate_all
from exact.context import Context, Evaluation
from exact.models.together import all_results


class EnsembleValue:
    """All members judge; the value is the mean of theirs, and `between` their spread."""

    def __init__(self, members: Mapping[str, ValueFunction]) -> None:
        """By name, at least one."""
        self._members = dict(members)

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError where a member does: a mean over those that answered would be another judge."""
        return self._panel(await all_results([member.evaluate(context) for member in self._members.values()]))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Siblings: each member judges all of them, together where it can. Raises ModelError."""
        found = await all_results([evaluate_all(member, contexts) for member in self._members.values()])
        return tuple(self._panel([each[i] for each in found]) for i in range(len(contexts)))

    def _panel(self, found: Sequence[Evaluation]) -> Evaluation:
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

    A search asks again about states that matter: candidates for its decision that lie within the noise of each other
    (`search.reevaluations`), ends that are visited again, and front-runners while its workers would be idle (`search.collision: resample`).
    The search takes the mean over all judgements of a state, and decides between contested candidates by those that were to tell them
    apart.
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

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Siblings: the cheap one judges together those that go on, at their first judgement. Raises ModelError."""
        plain = [context for context in contexts if not (context.terminated or context.confirms or context.draw)]
        others = [context for context in contexts if context.terminated or context.confirms or context.draw]
        together, apart = await all_results([self._all_cheap(plain), self._each(others)])
        cheap, dear = iter(together), iter(apart)
        return tuple(next(dear) if context.terminated or context.confirms or context.draw else next(cheap) for context in contexts)

    async def _all_cheap(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return await evaluate_all(self._cheap, contexts) if contexts else ()

    async def _each(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return tuple(await all_results([self.evaluate(context) for context in contexts]))
