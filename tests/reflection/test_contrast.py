"""Which steps are worth a lesson."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from exact.action import Action
from exact.context import Taken
from exact.observation import Observation
from exact.reflection.base import Surprise
from exact.reflection.contrast import contrast


def step(expected: float, real: float, node: int = 0, error: str = "") -> Surprise:
    taken = Taken(observation=Observation(text="", fingerprint=""), action=Action("click", ("1",), "click [1]"), error=error)
    return Surprise(step=taken, after=None, expected=expected, real=real, value_before=0.5, node=node)


values = st.floats(0, 1)
steps = st.lists(st.builds(step, values, values, st.integers(0, 99)), max_size=12)


@given(steps, values)
def test_what_is_picked_reaches_the_threshold_and_nothing_surprises_more(taken: list[Surprise], threshold: float) -> None:
    found = contrast(taken, threshold=threshold)
    largest = max((abs(s.surprise) for s in taken), default=-1.0)
    assert bool(found) == (largest >= threshold)
    assert all(kind == "policy" and abs(s.surprise) == largest for kind, s in found)


@given(steps, values)
def test_a_kind_gets_one_lesson_a_task(taken: list[Surprise], threshold: float) -> None:
    kinds = [kind for kind, _ in contrast(taken, threshold=threshold, kinds=("policy", "value"))]
    assert kinds in ([], ["policy", "value"])


@given(steps, steps, values)
def test_steps_that_surprise_less_change_nothing(taken: list[Surprise], others: list[Surprise], threshold: float) -> None:
    found = contrast(taken, threshold=threshold)
    if found:
        quiet = [s for s in others if abs(s.surprise) < abs(found[0][1].surprise)]
        assert contrast(quiet + taken + quiet, threshold=threshold) == found


def test_of_equal_surprises_the_earliest_is_taken_whatever_its_sign() -> None:
    found = contrast([step(0.5, 0.5, 1), step(0.25, 1.0, 2), step(1.0, 0.25, 3)], threshold=0.5)
    assert [s.node for _, s in found] == [2]


def test_a_surprise_at_the_threshold_counts() -> None:
    assert contrast([step(0.75, 0.5)], threshold=0.25)
    assert not contrast([step(0.75, 0.5)], threshold=0.26)


def test_a_refused_step_teaches_nothing() -> None:
    assert not contrast([step(1.0, 0.0, error="no element 9")], threshold=0.1)
