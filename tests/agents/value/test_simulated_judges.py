"""Debates with judges of known bias, noise and correlation: the use of each source of disagreement.

A sample is truth + bias by the order of reading + noise (sqrt(r) shared + sqrt(1 - r) own): r is the correlation of one judge's errors
on one state. Samples of the same judge cannot reveal the shared part; other judges can.
"""

import math
import random
import statistics
from typing import NamedTuple

import pytest

from exact.agents.value.debate import DebateValue, Speaker
from exact.config import ValueConfig
from exact.context import Evaluation
from exact.models.base import Sampling
from exact.models.script import Question
from exact.models.scripted import ScriptedModel
from tests.agents.value.test_debate import case, for_first, letter
from tests.prompts.states import context


class Known(NamedTuple):
    """A state of known truth, with the evaluation by judges of known faults."""

    hard: bool
    truth: float
    said: Evaluation
    drawn: int

    @property
    def error(self) -> float:
        return abs(self.said.value - self.truth)


def judge(name: str, truth: float, *, bias: float, noise: float, correlation: float) -> ScriptedModel:
    shared = random.Random(f"{name}/shared").gauss(0, 1)

    def answer(question: Question, sample: int) -> str:
        if "The debate:" not in question.text:
            return f"The case {case(question)}."
        own = random.Random(f"{name}/{question.key}/{question.seed}/{sample}").gauss(0, 1)
        error = noise * (math.sqrt(correlation) * shared + math.sqrt(1 - correlation) * own)
        return f"So.\nVerdict: {letter(truth + (-bias if for_first(question) else bias) + error)}"

    return ScriptedModel(answer)


async def judged(*, bias: float = 0.0, correlation: float = 0.0, judges: int = 1, states: int = 100, **settings: object) -> list[Known]:
    """Return states of known truth; at half of them the judges are noisy."""
    dice, found = random.Random(7), list[Known]()
    for i in range(states):
        truth, hard = dice.choice([0.2, 0.5, 0.8]), i % 2 == 1
        models = [
            judge(f"{i}/{j}", truth, bias=bias, noise=0.35 if hard else 0.02, correlation=correlation) for j in range(judges)
        ]  # fmt: skip
        seats = [Speaker(model, Sampling()) for model in models]
        config = ValueConfig(kind="debate", **{"samples": 3, "most": 3, **settings})  # type: ignore[arg-type]
        said = await DebateValue(seats[0], seats[0], seats, config).evaluate(context(node=i))
        found.append(Known(hard, truth, said, sum(r.sampling.n for model in models for r in model.requests if "judge" in r.role)))
    return found


def auc(found: list[Known], doubt: str) -> float:
    """Return how often a wrong evaluation reports more of that uncertainty than a right one."""
    wrong = [getattr(each.said, doubt) for each in found if each.error > 0.1]
    right = [getattr(each.said, doubt) for each in found if each.error <= 0.1]
    assert len(wrong) > 10 < len(right)
    return statistics.fmean((a > b) + 0.5 * (a == b) for a in wrong for b in right)


@pytest.mark.parametrize("bias", [0.3, -0.3])
async def test_both_orders_cancel_a_bias_exactly_and_it_is_reported(bias: float):
    found = [each for each in await judged(bias=bias, states=40) if not each.hard and each.truth == 0.5]
    assert len(found) > 4 and all(each.error < 1e-9 and each.said.order_effect == pytest.approx(-2 * bias) for each in found)
    assert all(each.said.within < 1e-9 > each.said.between for each in found)


async def test_a_spread_within_a_judge_predicts_its_error_where_its_errors_are_its_own():
    """AUC 0.77."""
    assert auc(await judged(), "within") > 0.72


async def test_only_other_judges_show_a_systematic_error_of_one_judge():
    """At a correlation of 0.9: AUC of one judge's own spread 0.58, of the spread between three 0.83."""
    alone, panel = await judged(correlation=0.9), await judged(correlation=0.9, judges=3)
    assert auc(alone, "within") < 0.65 and auc(panel, "between") > 0.78
    assert all(each.said.between == 0.0 for each in alone)


async def test_more_samples_cure_errors_of_their_own_and_not_shared_ones():
    async def error(correlation: float, samples: int) -> float:
        hard = [each for each in await judged(correlation=correlation, samples=samples, most=samples, states=40) if each.hard]
        return math.sqrt(statistics.fmean(each.error**2 for each in hard))

    assert await error(0.0, 12) < 0.6 * await error(0.0, 1)
    assert await error(1.0, 12) > 0.9 * await error(1.0, 1)


async def test_further_samples_are_bought_at_hard_states_only():
    found = await judged(threshold=0.08, most=12, states=40)
    assert all(each.drawn == 6 for each in found if not each.hard)
    bought = [each.drawn > 6 for each in found if each.hard]
    assert statistics.fmean(bought) > 0.5
