import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.value.samples import ValueSample, aggregate, order_effect, standard_error

OPINIONS = st.lists(
    st.builds(
        ValueSample,
        st.floats(0, 1),
        st.just(""),
        st.integers(0, 2),
        st.sampled_from(["for first", "against first", ""]),
    ),
    min_size=1,
    max_size=12,
)


@given(OPINIONS)
def test_the_value_lies_within_the_samples_and_every_figure_is_in_range(opinions: list[ValueSample]) -> None:
    found = aggregate(opinions)
    values = [one.value for one in opinions]
    assert min(values) - 1e-9 <= found.value <= max(values) + 1e-9
    assert 0 <= found.within <= 0.5 and 0 <= found.between <= 0.5 and -1 <= found.order_effect <= 1


def test_an_order_that_was_heard_more_often_does_not_count_for_more():
    heard = [ValueSample(0.8, order="for first")] * 3 + [ValueSample(0.4, order="against first")]
    assert aggregate(heard).value == pytest.approx(0.6) and order_effect(heard) == pytest.approx(0.4)


def test_nor_does_a_judge_that_said_more():
    found = aggregate([ValueSample(1.0, judge=0)] * 9 + [ValueSample(0.0, judge=1)])
    assert found.value == 0.5 and found.between == 0.5 and found.within == 0.0


def test_sources_of_disagreement_are_separated():
    unsure = aggregate([ValueSample(0.2), ValueSample(0.8)])
    swayed = aggregate([ValueSample(0.8, order="for first")] * 2 + [ValueSample(0.2, order="against first")] * 2)
    assert unsure.within > 0.4 and unsure.order_effect == unsure.between == 0.0
    assert swayed.order_effect == pytest.approx(0.6) and swayed.within == swayed.between == 0.0


def test_one_sample_gives_no_estimate_of_its_error():
    assert standard_error([ValueSample(0.5)]) == float("inf")
    assert standard_error([ValueSample(0.5), ValueSample(0.5)]) == 0.0
