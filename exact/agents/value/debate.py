"""Multi-agent debate: one model argues for the state, one against it, and judges decide, in both orders of presentation.

More samples do not remove a judge's bias towards the text that it reads last. Each judge therefore reads the debate equally often in both
orders, and the value is the mean over both, which cancels the order effect. The remaining spread within a judge falls with more samples,
which are drawn only if the spread is large.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

from exact.agents import form, roles
from exact.agents.parse import parse_argument, parse_grade
from exact.agents.request import state_request
from exact.agents.value.logprob import read_verdicts
from exact.agents.value.samples import Order, ValueSample, aggregate, counted, grade_scale, sample_until_precise
from exact.config import ValueConfig, ViewConfig
from exact.context import Argument, Context, Evaluation
from exact.models.base import ChatModel, Sampling
from exact.models.retry import all_results
from exact.prompts.ask import ask, whole_sentences

Side = Literal["for", "against"]
ORDERS: tuple[Order, Order] = ("for first", "against first")


class Speaker(NamedTuple):
    """A participant of the debate: a model and its sampling."""

    model: ChatModel
    sampling: Sampling


class DebateValue:
    """Two debaters argue `config.rounds` times; each judge then draws `config.samples` grades in each order.

    With `config.verdict: logprob` a judge answers yes or no with one token in each order, and its probability is the grade.

    Debaters speak independently within a round. While the standard error of the value exceeds `config.threshold`, all judges draw
    `config.samples` more, up to `config.most` in each order.
    """

    def __init__(
        self,
        supporter: Speaker,
        opposer: Speaker,
        judges: Sequence[Speaker],
        config: ValueConfig,
        view: ViewConfig = ViewConfig(),  # noqa: B008 (frozen)
    ) -> None:
        self._debaters: dict[Side, Speaker] = {"for": supporter, "against": opposer}
        self._judges, self._config, self._view = tuple(judges), config, view
        self._parse = partial(parse_grade, grades=grade_scale(config.grades))

    async def evaluate(self, context: Context) -> Evaluation:
        """Return the evaluation that the judges' grades give.

        Raises ModelError if a debater or a judge gives no answer; never invents a value.
        """
        arguments = await self._debate(context)
        samples = await sample_until_precise(partial(self._grades, context, arguments), self._config)
        return aggregate(samples, arguments, tuple(self._transcript_line(sample) for sample in samples))

    async def _debate(self, context: Context) -> tuple[Argument, ...]:
        arguments = tuple[Argument, ...]()
        for number in range(self._config.rounds):
            new = await all_results([self._argument(context, side, number, arguments) for side in self._debaters])
            arguments += tuple(new)
        return arguments

    async def _argument(self, context: Context, side: Side, number: int, arguments: tuple[Argument, ...]) -> Argument:
        speaker = self._debaters[side]
        role = f"{self._config.role}.{'supporter' if side == 'for' else 'opposer'}"
        request = state_request(
            "debater", context, self._view, speaker.sampling, role=role, samples=1, model=speaker.model.name, more=number, side=side,
            changes=self._config.changes, heard=arguments,
        )  # fmt: skip
        [text] = await ask(speaker.model, request, parse_argument, seed=context.seed, cut=whole_sentences)
        return Argument(side=side, text=text, round=number)

    async def _grades(self, context: Context, arguments: tuple[Argument, ...], more: int, count: int) -> list[ValueSample]:
        asked = [(judge, order) for judge in range(len(self._judges)) for order in ORDERS]
        results = await all_results([self._grades_of(context, arguments, judge, order, more, count) for judge, order in asked])
        return [sample for samples in results for sample in samples]

    async def _grades_of(
        self, context: Context, arguments: tuple[Argument, ...], judge: int, order: Order, more: int, count: int
    ) -> list[ValueSample]:
        speaker, one_token = self._judges[judge], self._config.verdict == "logprob"
        request = state_request(
            "value_logprob" if one_token else "judge", context, self._view, speaker.sampling,
            role=roles.judge_role(self._config, judge), samples=count, model=speaker.model.name, more=more,
            changes=self._config.changes, arguments=order_arguments(arguments, order), form=None if one_token else form.GRADE,
        )  # fmt: skip
        if one_token:
            return await read_verdicts(speaker.model, request, seed=context.seed, first=not more, judge=judge, order=order)
        graded = await ask(speaker.model, request, self._parse, seed=context.seed)
        return counted([ValueSample(one.value, one.reasoning, judge, order) for one in graded], count)

    def _transcript_line(self, sample: ValueSample) -> str:
        """Return one grade as a line of the transcript."""
        return f"{roles.judge_role(self._config, sample.judge)}, {sample.order}: {sample.value:.2f}, {sample.reasoning}"


def order_arguments(arguments: Sequence[Argument], order: Order) -> tuple[Argument, ...]:
    """Return the arguments as a judge reads them: by round, within each round in the given order of sides."""
    against_first = order == "against first"
    return tuple(sorted(arguments, key=lambda one: (one.round, (one.side == "for") == against_first)))
