import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.rank import LLMComparator, bradley_terry
from exact.config import ValueConfig
from exact.errors import AnswerError
from exact.models.script import Question
from exact.models.scripted import ScriptedModel

from ..prompts.states import LIST, SHOE, context


def prefers_the_shoe(question: Question, sample: int) -> str:
    text = question.messages[-1][1]
    first = text[text.index("The first way.") : text.index("The second way.")]
    return f"By its button.\nBetter: {'first' if 'button' in first else 'second'}"


async def test_the_state_that_wins_both_ways_round_has_most_of_the_votes():
    model = ScriptedModel(prefers_the_shoe)
    shares = await LLMComparator(model, ValueConfig(samples=1)).compare([context(LIST), context(SHOE)])
    assert shares[1] > 0.7 and sum(shares) == pytest.approx(1) and len(model.requests) == 2


async def test_a_model_that_always_prefers_the_first_prefers_none():
    model = ScriptedModel(lambda question, sample: "Better: first")
    assert await LLMComparator(model, ValueConfig(samples=2)).compare([context(LIST), context(SHOE)]) == pytest.approx((0.5, 0.5))


async def test_a_vote_is_never_made_up():
    with pytest.raises(AnswerError):
        await LLMComparator(ScriptedModel(lambda question, sample: "both"), ValueConfig(samples=1)).compare([context(LIST), context(SHOE)])


async def test_one_state_needs_no_vote():
    model = ScriptedModel(prefers_the_shoe)
    assert await LLMComparator(model, ValueConfig()).compare([context()]) == (1.0,) and not model.requests


@given(st.lists(st.floats(0.2, 5), min_size=2, max_size=5))
def test_strengths_are_found_from_the_wins_they_give(strengths: list[float]) -> None:
    size = len(strengths)
    wins = [[0.0 if i == j else 1000 * strengths[i] / (strengths[i] + strengths[j]) for j in range(size)] for i in range(size)]
    found = bradley_terry(wins, prior=0.0, rounds=5000)
    assert found == pytest.approx([each / sum(strengths) for each in strengths], abs=1e-3)
