"""Comparison of states."""

import pytest

from exact.environments.restore.waypoint import MATCHES, Match, compare_states, state_key, worst_match
from exact.observation import Observation


@pytest.mark.parametrize(
    ("expected", "got", "found"),
    [
        ("a", "a", "exact"),
        ("a~1", "a~1", "exact"),
        ("a~1", "a~2", "equivalent"),
        ("a", "a~2", "equivalent"),
        ("a~1", "a", "equivalent"),
        ("a", "b", "drifted"),
        ("a~1", "b~1", "drifted"),
        ("", "", "exact"),
        ("", "a", "drifted"),
        ("a", "", "drifted"),
        ("a.0000000011", "a.0000000012", "drifted"),
        ("a.0000000011", "a.1111111112", "equivalent"),
        ("a.0000000011~1", "a.1111111112~1", "equivalent"),
        ("a.0000000011", "b.1111111111", "drifted"),
        ("a.0000000011", "a", "drifted"),
    ],
)
def test_states_are_exact_equivalent_or_drifted(expected: str, got: str, found: Match) -> None:
    assert compare_states(expected, got) == found


def test_a_mark_holds_the_volatile_parts_where_there_are_any() -> None:
    assert state_key(None) == ""
    assert state_key(Observation(text="", fingerprint="a")) == "a"
    assert state_key(Observation(text="", fingerprint="a", volatile="1")) == "a~1"


def test_a_path_is_as_good_as_its_worst_state() -> None:
    assert worst_match(["exact", "drifted", "equivalent"]) == "drifted"
    assert worst_match(list(MATCHES[:2])) == "equivalent"
    assert worst_match([]) == "exact"
