"""Multi-agent debate: one argues for the state, one against it, and judges decide, in both orders of presentation.

A judge that heeds what it reads last is not cured by asking it more often. Each judge reads the debate as often one way round as the other,
and the value is the mean over both: a shift by the order cancels. What is left, the spread within a judge, falls with more
samples, and those are drawn only where it is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from exact.agents import roles
from exact.agents.grades import grade_scale
from exact.agents.parse import parse_argument, parse_grade
from exact.agents.request import state_request
from exact.agents.value.samples import Order, ValueSample, aggregate, sample_until_precise
from exact.config import ValueConfig
from exact.context import Argument, Context, Evaluation
from exact.models.ask import ask
from exact.models.base import ChatModel, Sampling
from exact.models.together import all_results

Side = Literal["for", "against"]
ORDERS: tuple[Order, Order] = ("for first", "against first")


class Speaker(NamedTuple):
    """Who speaks: a model and how it is sampled."""

    model: ChatModel
    sampling: Sampling


class DebateValue:
    """Two debaters argue `config.rounds` times, independently within a round; each of `judges` draws `config.samples` verdicts an order.

    While the standard error of the value is above `config.threshold`, all judges draw as many again, up to `config.most` in each order.
    """

    def __init__(self, supporter: Speaker, opposer: Speaker, judges: Sequence[Speaker], config: ValueConfig) -> None:
        self._debaters: dict[Side, Speaker] = {"for": supporter, "against": opposer}
        self._judges, self._config = tuple(judges), config
        self._parse = partial(parse_grade, grades=grade_scale(config.grades))

    async def evaluate(self, context: Context) -> Evaluation:
        """Raises ModelError where a debater or a judge could not be heard; never invents a value."""
        arguments = await self._argue(context)
        opinions = await sample_until_precise(partial(self._verdicts, context, arguments), self._config)
        return aggregate(opinions, arguments, tuple(self._said(opinion) for opinion in opinions))

    async def _argue(self, context: Context) -> tuple[Argument, ...]:
        heard = tuple[Argument, ...]()
        for number in range(self._config.rounds):
            said = await all_results([self._case(context, side, number, heard) for side in self._debaters])
            heard += tuple(said)
        return heard

    async def _case(self, context: Context, side: Side, number: int, heard: tuple[Argument, ...]) -> Argument:
        seat = self._debaters[side]
        role = f"{self._config.role}.{'supporter' if side == 'for' else 'opposer'}"
        request = state_request(
            "debater", context, self._config, seat.sampling, role=role, samples=1, model=seat.model.name, more=number, side=side,
            heard=heard,
        )  # fmt: skip
        [text] = await ask(seat.model, request, parse_argument, seed=context.seed)
        return Argument(side=side, text=text, round=number)

    async def _verdicts(self, context: Context, arguments: tuple[Argument, ...], more: int, count: int) -> list[ValueSample]:
        asked = [(judge, order) for judge in range(len(self._judges)) for order in ORDERS]
        said = await all_results([self._verdict(context, arguments, judge, order, more, count) for judge, order in asked])
        return [opinion for opinions in said for opinion in opinions]

    async def _verdict(
        self, context: Context, arguments: tuple[Argument, ...], judge: int, order: Order, more: int, count: int
    ) -> list[ValueSample]:
        seat = self._judges[judge]
        request = state_request(
            "judge", context, self._config, seat.sampling, role=roles.judge_role(self._config, judge), samples=count,
            model=seat.model.name, more=more, arguments=order_arguments(arguments, order),
        )  # fmt: skip
        judged = await ask(seat.model, request, self._parse, seed=context.seed)
        return [ValueSample(one.value, one.reasoning, judge, order) for one in judged]

    def _said(self, opinion: ValueSample) -> str:
        """One verdict of the transcript."""
        return f"{roles.judge_role(self._config, opinion.judge)}, {opinion.order}: {opinion.value:.2f}, {opinion.reasoning}"


def order_arguments(arguments: Sequence[Argument], order: Order) -> tuple[Argument, ...]:
    """The debate as a judge reads it: round by round, within each the one side first or the other."""
    against_first = order == "against first"
    return tuple(sorted(arguments, key=lambda one: (one.round, (one.side == "for") == against_first)))
