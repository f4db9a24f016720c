import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.calibration.measure import Prediction, auc, auc_within, brier, ece, fit, interval, refitted, reliability

JUDGED = st.lists(
    st.builds(Prediction, st.sampled_from("abc"), st.just(0), st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.booleans()), min_size=1
)


def of(*pairs: tuple[float, bool]) -> list[Prediction]:
    return [Prediction("t", i, value, success) for i, (value, success) in enumerate(pairs)]


def test_the_figures_of_a_known_sample():
    judged = of((0.9, True), (0.8, False), (0.3, True), (0.1, False))
    assert brier(judged) == pytest.approx((0.01 + 0.64 + 0.49 + 0.01) / 4)
    assert auc(judged) == 0.75
    assert [(bin.states, bin.rate) for bin in reliability(judged, 2)] == [(2, 0.5), (2, 0.5)]


def test_one_outcome_alone_says_nothing_about_telling_them_apart():
    assert auc(of((0.9, True), (0.1, True))) is None


@given(JUDGED)
def test_a_fitted_curve_never_falls_and_is_no_worse_on_what_it_was_fitted_to(judged: list[Prediction]) -> None:
    curve = fit(judged)
    points = [curve(value / 20) for value in range(21)]
    assert points == sorted(points) and all(0 <= each <= 1 for each in points)
    assert brier([one._replace(value=curve(one.value)) for one in judged]) <= brier(judged) + 1e-12


def test_a_fit_finds_what_grades_are_worth():
    dice, worth = random.Random(1), {0.2: 0.1, 0.5: 0.2, 0.8: 0.9}
    judged = [Prediction(f"t{i % 20}", i, v, dice.random() < worth[v]) for i, v in enumerate(dice.choices(list(worth), k=3000))]
    curve = fit(judged)
    assert all(curve(value) == pytest.approx(rate, abs=0.05) for value, rate in worth.items())
    assert brier(refitted(judged)) < brier(judged)


def test_refitting_never_sees_the_task_it_is_tried_on():
    judged = [Prediction("a", 0, 0.5, True)] * 5 + [Prediction("b", 0, 0.5, False)] * 5
    assert {(one.task, one.value) for one in refitted(judged)} == {("a", 0.0), ("b", 1.0)}


def test_intervals_resample_tasks_and_hold_the_figure():
    judged = [Prediction(f"t{i % 8}", i, 0.6, i % 3 == 0) for i in range(80)]
    found = interval(judged, brier)
    assert found is not None and found.low <= found.value <= found.high


def test_the_seeds_of_a_task_are_drawn_together():
    judged = [Prediction(f"t?seed={i}", 0, 0.6, i % 3 == 0) for i in range(30)]
    found = interval(judged, brier)
    assert found is not None and found.low == found.value == found.high
    assert not refitted(judged)


def test_the_calibration_error_is_the_distance_of_values_from_rates():
    judged = [
        Prediction("a", i, value, success) for i, (value, success) in enumerate([(0.9, True), (0.9, False), (0.1, False), (0.1, False)])
    ]
    assert ece(judged) == pytest.approx(0.5 * 0.4 + 0.5 * 0.1)
    assert ece([Prediction("a", i, 0.5, i % 2 == 0) for i in range(4)]) == 0.0


def test_values_that_only_tell_easy_tasks_from_hard_ones_separate_no_states_of_one_task():
    easy = [Prediction("easy", i, 0.9, i < 9) for i in range(10)]
    hard = [Prediction("hard", i, 0.1, i < 1) for i in range(10)]
    assert auc([*easy, *hard]) == pytest.approx(0.9)
    assert auc_within([*easy, *hard]) == 0.5
    assert auc_within([one for one in (*easy, *hard) if one.success]) is None


@given(JUDGED)
def test_the_area_is_the_share_of_pairs_in_order(judged: list[Prediction]) -> None:
    pairs = [(a.value, b.value) for a in judged if a.success for b in judged if not b.success]
    assert auc(judged) == (pytest.approx(sum((a > b) + (a == b) / 2 for a, b in pairs) / len(pairs)) if pairs else None)


def test_a_task_that_is_drawn_again_counts_as_another_one():
    judged = [Prediction("a", 0, 0.9, True), Prediction("a", 1, 0.1, False), *(Prediction("b", i, 0.5, i == 0) for i in range(3))]
    found = interval(judged, auc_within)
    assert found is not None and (found.low, found.high) == (0.5, 1.0)
    assert {round(part, 6) for part in found} <= {round((1 + 2 * 0.5) / 3, 6), 0.5, 1.0}
