import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.builtin.judge.recall import MAX_ADJUSTMENT, MAX_WEIGHT, reflection_adjustment
from exact.context import Reflection
from tests.agents.builtin.pages import ACTIONS, context, page

SAVE = page(("button", "Save"))


def lesson(surprise=0.5, *, attempt="one", state="", id="r", action='click button "Save"'):
    return Reflection(
        id=id, kind="policy", text=id, instruction="Save", state=state, action="", action_label=action, surprise=surprise, task=attempt
    )


def change(*lessons, seen=SAVE, history=()):
    told = context("Save", seen, *history, reflections=lessons)
    return reflection_adjustment(told, "policy", ACTIONS.parse("click [1]"), seen, told.history)


@pytest.mark.parametrize(("now", "counts"), [("a list of results", False), ("an empty form and more", True)])
def test_a_reflection_no_longer_counts_if_its_action_was_taken_in_a_state_that_fits_it_better(now, counts):
    before, seen = (msgspec.structs.replace(SAVE, text=text) for text in ("an empty form", now))
    known = lesson(state="an empty form and more" if counts else "an empty form")
    assert bool(change(known, seen=seen, history=[(before, "click [1]")])[0]) is counts


def test_a_reflection_of_one_attempt_counts_half_and_a_warning_less_than_praise():
    assert change(lesson(0.5))[0] == pytest.approx(MAX_WEIGHT / 2)
    assert change(lesson(-0.5))[0] == pytest.approx(-MAX_WEIGHT / 5)
    assert change(lesson(-0.25), lesson(-0.25, attempt="two"))[0] == pytest.approx(-MAX_WEIGHT / 3)


def test_reflections_of_one_attempt_do_not_confirm_each_other_and_those_of_two_do():
    alone = change(lesson(0.25, id="a"), lesson(0.25, id="b"))
    both = change(lesson(0.25, id="a"), lesson(0.25, id="b", attempt="two"))
    assert alone[0] == pytest.approx(MAX_WEIGHT * 0.5)
    assert both[0] == pytest.approx(MAX_WEIGHT * 2 / 3)


def test_one_that_disagrees_takes_from_what_is_said_and_confirms_nothing():
    assert change(lesson(0.5), lesson(-0.25, attempt="two"))[0] == pytest.approx(MAX_WEIGHT * 0.5 / 2)
    assert change(lesson(0.5), lesson(-0.5, attempt="two"))[0] == 0.0


def test_the_named_reflection_agrees_with_the_change():
    told = change(lesson(0.3, id="prefer"), lesson(0.3, id="again", attempt="two"), lesson(-0.4, id="avoid", attempt="three"))
    assert told[0] > 0
    assert "prefer" in told[1]


def test_reflections_about_other_actions_and_of_other_kinds_do_not_count():
    value = msgspec.structs.replace(lesson(), kind="value")
    assert change(value, lesson(action='click button "Delete"'), lesson(action="press")) == (0.0, "")


@given(st.lists(st.tuples(st.floats(-1, 1), st.sampled_from("abcd")), max_size=12))
def test_a_change_is_bounded_and_never_against_what_all_say_together(said):
    total = sum(max(-1.0, min(1.0, 2 * surprise)) for surprise, _ in said)
    found = change(*(lesson(surprise, attempt=attempt, id=str(n)) for n, (surprise, attempt) in enumerate(said)))[0]
    assert abs(found) <= MAX_ADJUSTMENT
    assert found * total >= 0 or abs(total) < 1e-9
