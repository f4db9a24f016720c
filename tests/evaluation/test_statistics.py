"""Statistics against closed forms, and against scipy where it is installed."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.evaluation.statistics import bootstrap, differences, mcnemar, rate, sign_flip, solved_within

MANY = {str(i): [float(x)] for i, x in enumerate(np.random.default_rng(1).random(60))}
GROUPS = st.dictionaries(
    st.text(min_size=1, max_size=3), st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=4), min_size=1, max_size=9
)


def test_the_bootstrap_interval_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    values = [each[0] for each in MANY.values()]
    theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="percentile", random_state=0).confidence_interval
    ours = bootstrap(MANY, draws=20_000)
    assert ours.mean == pytest.approx(np.mean(values))
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.004)


def test_the_bootstrap_covers_as_often_as_it_says() -> None:
    rng, covered = np.random.default_rng(2), 0
    for _ in range(200):
        drawn = bootstrap({str(i): [float(x)] for i, x in enumerate(rng.random(80) < 0.4)}, draws=400)
        covered += drawn.low <= 0.4 <= drawn.high
    assert 178 <= covered <= 200, "95 percent of 200, five standard errors down"


def test_seeds_of_one_task_widen_the_interval_as_one_draw_does() -> None:
    once = bootstrap({str(i): [float(i % 2)] for i in range(20)})
    ten_times = bootstrap({str(i): [float(i % 2)] * 10 for i in range(20)})
    assert ten_times == once, "ten equal seeds say no more than one"


def test_every_task_weighs_the_same_however_many_seeds_it_has() -> None:
    assert bootstrap({"a": [1.0], "b": [0.0] * 9}).mean == 0.5


def test_one_task_has_no_interval() -> None:
    found = bootstrap({"a": [1.0, 0.0]})
    assert found.mean == 0.5 and math.isnan(found.low) and str(found) == "0.500"
    assert str(bootstrap({})) == "-"


@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.025 ** (1 / 30), 1.0), (0.0, 0.0, 1 - 0.025 ** (1 / 30))])
def test_a_share_that_never_differs_has_the_exact_binomial_bound(value: float, low: float, high: float) -> None:
    found = rate({str(i): [value] for i in range(30)})
    assert (found.low, found.high) == pytest.approx((low, high))
    assert bootstrap({str(i): [value] for i in range(30)})[1:3] == (value, value)


def test_that_bound_is_scipys() -> None:
    stats = pytest.importorskip("scipy.stats")
    assert rate({str(i): [1.0] for i in range(30)}).low == pytest.approx(stats.binomtest(30, 30).proportion_ci().low)


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemars_p_is_that_of_the_binomial_test(wins: int, losses: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    theirs = stats.binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert mcnemar(wins, losses) == pytest.approx(theirs)


def test_mcnemars_p_on_known_cases() -> None:
    assert (mcnemar(0, 0), mcnemar(5, 5), mcnemar(6, 0)) == (1.0, 1.0, 2 / 64)


@given(GROUPS)
@settings(max_examples=20)
def test_the_flip_of_signs_is_every_flip_tried(values: dict[str, list[float]]) -> None:
    means = [sum(each) / len(each) for each in values.values()]
    sums = [abs(sum(sign * mean for sign, mean in zip(signs, means, strict=True))) for signs in product((1, -1), repeat=len(means))]
    assert sign_flip(values) == pytest.approx(sum(each >= sums[0] - 1e-9 for each in sums) / len(sums))


def test_many_flips_are_drawn_and_come_near() -> None:
    values = {str(i): [1.0 if i < 14 else -1.0] for i in range(20)}
    assert sign_flip(values) == pytest.approx(mcnemar(14, 6), abs=0.02)


def test_drawn_flips_count_the_observed_differences_so_p_is_never_zero() -> None:
    values = {str(i): [1.0] for i in range(40)}
    assert sign_flip(values, draws=99) == pytest.approx(1 / 100)


def test_differences_are_paired_on_task_and_seed() -> None:
    task = {"a?seed=0": "a", "a?seed=1": "a", "b?seed=0": "b"}
    assert differences({"a?seed=0": 1.0, "a?seed=1": 0.0}, {"a?seed=0": 0.0, "b?seed=0": 1.0}, task) == {"a": [1.0]}


@given(st.lists(st.one_of(st.none(), st.integers(1, 9).map(float)), max_size=12))
def test_solved_within_rises_to_the_share_whose_cost_is_known(costs: list[float | None]) -> None:
    points = solved_within(costs, 20)
    assert points == sorted(points) and [share for _, share in points] == sorted(share for _, share in points)
    assert all(share == pytest.approx(sum(c is not None and c <= x for c in costs) / 20) for x, share in points)
