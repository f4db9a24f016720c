"""Which steps are worth a lesson, by signal."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.action import Action
from exact.context import Taken
from exact.observation import Observation
from exact.reflection.contrast import SIGNALS, FailedPath, Option, Record, Signal, contrast


def taken(name: str = "click [1]", error: str = "") -> Taken:
    return Taken(observation=Observation(text="", fingerprint=""), action=Action("click", ("1",), name), error=error)


def record(node: int = 0, **known: Any) -> Record:
    """Return a step. By default its result has its first evaluation, and Q contains nothing of the result."""
    given = {"before": None, "chosen": None, "step": taken(), "after": None, "node": node}
    given |= {"came": known.get("first"), "expected": known.get("chosen")}
    return Record(**(given | known))  # type: ignore[arg-type]


values = st.one_of(st.none(), st.floats(0, 1))
records = st.lists(
    st.builds(record, st.integers(0, 99), before=values, chosen=values, first=values, final=values, following=values), max_size=12
)


def found(*records: Record, signals: tuple[Signal, ...] = SIGNALS, threshold: float = 0.2, most: int = 9) -> list[tuple[str, str, float]]:
    return [
        (kind, each.signal, round(each.surprise, 3)) for kind, each in contrast(records, signals=signals, threshold=threshold, most=most)
    ]


@given(records, st.floats(0, 1), st.integers(1, 3))
def test_the_largest_surprises_above_the_threshold_are_picked_up_to_the_limit(taken: list[Record], threshold: float, most: int) -> None:
    picked = contrast(taken, signals=SIGNALS, threshold=threshold, most=most)
    for kind in ("policy", "value"):
        sizes = [each.size for each_kind, each in picked if each_kind == kind]
        assert len(sizes) <= most and sizes == sorted(sizes, reverse=True) and all(size >= threshold for size in sizes)


@given(records, records, st.floats(0, 1))
def test_steps_that_surprise_less_change_nothing(taken: list[Record], others: list[Record], threshold: float) -> None:
    picked = contrast(taken, signals=("edge",), threshold=threshold)
    if picked:
        quiet = [each for each in others if each.chosen is None or each.first is None or abs(each.first - each.chosen) < picked[0][1].size]
        assert contrast(quiet + taken + quiet, signals=("edge",), threshold=threshold) == picked


@given(records)
def test_a_missing_expectation_is_no_surprise(taken: list[Record]) -> None:
    for each in taken:
        unknown = msgspec.structs.replace(each, before=None, chosen=None, expected=None, came=None, first=None, final=None, following=None)
        assert not contrast([unknown], signals=SIGNALS, threshold=0.0)


def test_each_signal_measures_its_own_fault() -> None:
    one = record(before=0.5, chosen=0.9, first=0.1, final=0.6, following=0.7)
    assert found(one, signals=("outcome",)) == [("policy", "outcome", -0.4)]
    assert found(one, signals=("judge",)) == [("value", "judge", 0.5)]
    assert found(one, signals=("edge",)) == [("policy", "edge", -0.8)]
    assert found(one, signals=("edge_value",)) == [("value", "edge_value", 0.6)]


def test_the_search_against_the_policys_favourite() -> None:
    other = Option(action="click [2]", value=0.2, visits=9)
    one = record(chosen=0.8, chosen_visits=9, favourite=other, noise=0.3)
    [(kind, surprise)] = contrast([one], signals=("policy",), threshold=0.2)
    assert (kind, surprise.alternative, surprise.expected, surprise.real) == ("policy", "click [2]", 0.2, 0.8)


@pytest.mark.parametrize(("visits", "noise"), [(1, 0.5), (9, 2.0)])
def test_a_difference_within_the_noise_is_no_surprise(visits: int, noise: float) -> None:
    other = Option(action="click [2]", value=0.2, visits=visits)
    assert not found(record(chosen=0.8, chosen_visits=visits, favourite=other, noise=noise), signals=("policy",))


def test_another_action_that_was_better_in_the_end() -> None:
    one = record(chosen=0.8, final=0.1, best_other=Option(action="click [2]", value=0.6))
    assert found(one, signals=("sibling",)) == [("policy", "sibling", -0.5)]


def test_a_way_that_failed_is_contrasted_with_the_committed_one() -> None:
    way = FailedPath(step=taken("click [3]"), after=None, depth=4, value=0.0)
    [(_, surprise)] = contrast([record(before=0.6, chosen=0.8, failed=way)], signals=("branch",), threshold=0.2)
    assert surprise.step.action.key == "click [3]" and surprise.alternative == "click [1]" and surprise.surprise == -0.6


def test_the_earliest_of_equal_surprises_is_taken_for_either_sign() -> None:
    steps = [record(1, chosen=0.5, first=0.5), record(2, chosen=0.25, first=1.0), record(3, chosen=1.0, first=0.25)]
    assert [each.node for _, each in contrast(steps, signals=("edge",), threshold=0.5)] == [2]


def test_the_largest_of_several_signals_about_one_action_counts() -> None:
    assert found(record(before=0.5, chosen=0.9, first=0.1), signals=("outcome", "edge")) == [("policy", "edge", -0.8)]


def test_a_refused_step_teaches_nothing() -> None:
    assert not found(record(chosen=1.0, first=0.0, step=taken(error="no element 9")))


def test_after_an_attempt_that_failed_no_action_is_praised_but_judges_still_learn() -> None:
    up = record(1, before=0.2, chosen=0.2, first=0.9, final=0.95)
    down = record(2, before=0.9, chosen=0.9, first=0.1, final=0.9)
    picked = contrast([up, down], signals=SIGNALS, threshold=0.2, most=9, praise=False)
    assert {(kind, each.surprise < 0) for kind, each in picked} == {("policy", True), ("value", False)}
    assert any(kind == "policy" and each.surprise > 0 for kind, each in contrast([up], signals=SIGNALS, threshold=0.2, praise=True))
