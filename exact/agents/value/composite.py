"""Value functions composed of others: an ensemble, and a cascade that calls an expensive value function only for states that matter."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

import msgspec

from exact.agents.base import ValueFunction, evaluate_all
from exact.context import Context, Evaluation
from exact.models.retry import all_results


class EnsembleValue:
    """The mean of all members' values. `between` is the spread of the members."""

    def __init__(self, members: Mapping[str, ValueFunction]) -> None:
        """Configure the ensemble with at least one member, by name."""
        self._members = dict(members)

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the mean evaluation.

        Raises ModelError if any member does: a mean over the remaining members would be a different value function.
        """
        return self._panel(await all_results([member.evaluate(context) for member in self._members.values()]))

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return the mean evaluations of siblings, in order. Members that can evaluate them as a batch do.

        Raises ModelError.
        """
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
    """Evaluates with a cheap value function; with an expensive one at ends, unseen states, confirmations and repeated evaluations.

    A search evaluates a state again if it matters: candidates for its decision whose values differ by less than the noise
    (`search.contest`), ends that it visits again, and the best candidates while its workers would be idle (`search.collision: resample`).
    The search uses the mean of all evaluations of a state. It decides between close candidates by the evaluations that were made to
    separate them.
    """

    def __init__(self, cheap: ValueFunction, expensive: ValueFunction) -> None:
        self._cheap, self._expensive = cheap, expensive

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation of a state by the value function that applies.

        Raises ModelError.
        """
        if _decides(context):
            return await self._expensive.evaluate(context)
        if context.draw > 0:  # the cheap one had the first draw
            return await self._expensive.evaluate(msgspec.structs.replace(context, draw=context.draw - 1))
        return await self._cheap.evaluate(context)

    async def evaluate_all(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        """Return evaluations of siblings, in order.

        The cheap value function evaluates first-time, non-terminal states as a batch. Raises ModelError.
        """
        plain = [context for context in contexts if not (_decides(context) or context.draw)]
        others = [context for context in contexts if _decides(context) or context.draw]
        together, apart = await all_results([self._all_cheap(plain), self._each(others)])
        cheap, expensive = iter(together), iter(apart)
        return tuple(next(expensive) if _decides(context) or context.draw else next(cheap) for context in contexts)

    async def _all_cheap(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return await evaluate_all(self._cheap, contexts) if contexts else ()

    async def _each(self, contexts: Sequence[Context]) -> tuple[Evaluation, ...]:
        return tuple(await all_results([self.evaluate(context) for context in contexts]))


def _decides(context: Context) -> bool:
    """Return whether an evaluation may decide on an action that cannot be taken back, or confirms another."""
    return context.terminated or context.unseen or context.confirms
