"""Costs are running means, and decide when a snapshot pays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.restore.costs import UNMEASURED, Costs

seconds = st.floats(0, 1e3)


@given(st.lists(seconds, min_size=1, max_size=60))
def test_a_cost_lies_between_what_was_measured(measured: list[float]) -> None:
    costs = Costs(cores=2)
    for each in measured:
        costs.add("restore", each)
    assert min(measured) - 1e-6 <= costs.of("restore") <= max(measured) + 1e-6


def test_few_measurements_count_alike_and_old_ones_fade() -> None:
    costs = Costs()
    for each in (1.0, 2.0, 3.0):
        costs.add("step", each)
    assert costs.of("step") == pytest.approx(2.0)
    for _ in range(200):
        costs.add("step", 10.0)
    assert costs.of("step") == pytest.approx(10.0, abs=0.01)


def test_unmeasured_costs_have_assumed_values_and_replay_is_assumed_free() -> None:
    costs = Costs()
    assert {name: costs.of(name) for name in ("fork", "reset", "open", "step")} == {"fork": 0.6, "reset": 0, "open": 0, "step": 0}
    costs.add("fork", 0.1)
    assert costs.of("fork") == pytest.approx(0.1) and costs.of("restore") == UNMEASURED["restore"] and costs.back == pytest.approx(0.1)


@pytest.mark.parametrize(("workers", "expected"), [(1, 0.5), (2, 0.5), (4, 0.8), (8, 1.6)])
def test_processor_time_counts_where_more_workers_than_cores_want_it(workers: int, expected: float) -> None:
    costs = Costs(workers=workers, cores=2)
    costs.add("fork", 0.5, 0.4)
    assert costs.of("fork") == pytest.approx(expected)


@given(st.floats(0, 20), seconds, seconds, seconds)
def test_a_snapshot_pays_only_where_it_saves_more_than_it_costs(returns: float, way: float, back: float, snapshot: float) -> None:
    costs = Costs()
    costs.add("restore", back), costs.add("fork", back), costs.add("snapshot", snapshot)
    with_one, without = snapshot + returns * back, returns * way
    if with_one < without * (1 - 1e-9) - 1e-9:
        assert costs.pays(returns, way)
    if with_one > without * (1 + 1e-9) + 1e-9:
        assert not costs.pays(returns, way)


@given(seconds)
def test_a_state_that_is_not_returned_to_gets_no_snapshot(way: float) -> None:
    assert not Costs().pays(0, way)


def test_where_opening_an_environment_was_slow_snapshots_are_assumed_to_be_slow_until_one_was_taken() -> None:
    costs = Costs(cores=64)
    costs.add("open", 8.0)
    assert (costs.of("snapshot"), costs.of("restore"), costs.of("fork"), costs.of("reset")) == pytest.approx((1.6, 2.4, 3.2, 2.4))
    costs.add("fork", 0.7)
    assert costs.of("fork") == pytest.approx(0.7)


def test_a_state_that_is_likely_come_back_to_is_kept_at_the_second_visit_where_resets_are_as_slow_as_opening() -> None:
    costs = Costs(cores=64)
    costs.add("open", 7.8)
    costs.add("reset", 6.3)
    assert costs.pays(0.5, costs.of("reset"))


def test_where_resets_are_quick_a_slow_opening_is_no_reason_to_keep_anything() -> None:
    costs = Costs(cores=64)
    costs.add("open", 7.8)
    costs.add("reset", 0.3)
    assert not costs.pays(20, costs.of("reset"))


def test_one_slow_return_is_tried_again_after_some_resets_and_several_after_more() -> None:
    def resets_until_returns_are_expected_to_be_quicker(returns: int) -> int:
        costs = Costs(cores=64)
        costs.add("open", 9.5)
        for _ in range(returns):
            costs.add("fork", 11.0)
        assert costs.of("fork") == pytest.approx(11.0)
        for resets in range(100):
            if costs.of("fork") < 8.0:
                return resets
            costs.add("reset", 8.0)
        return 100

    assert 2 <= resets_until_returns_are_expected_to_be_quicker(1) <= 4
    assert 20 <= resets_until_returns_are_expected_to_be_quicker(10) <= 30
