import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.benchmarks.ids import join, split, split_pattern
from exact.errors import UsageError


@given(st.text("abcdefgh-/", min_size=1), st.integers(0, 10**9))
def test_splitting_a_joined_id_gives_its_parts(name: str, seed: int) -> None:
    assert split(join(name, seed)) == (name, seed)


def test_an_id_without_seed_has_seed_zero() -> None:
    assert split("miniwob/click-test") == ("miniwob/click-test", 0)


@pytest.mark.parametrize(
    ("text", "seeds"), [("seed=4", [4]), ("seed=1..3", [1, 2, 3]), ("seed=5,1..2", [5, 1, 2]), ("seed=1,1..2", [1, 2]), ("seed=2..2", [2])]
)
def test_seeds_are_numbers_ranges_and_lists_of_them(text: str, seeds: list[int]) -> None:
    assert split_pattern(f"a/b?{text}") == ("a/b", seeds)


@pytest.mark.parametrize("query", ["", "seed=", "seed=x", "seed=-1", "sed=1", "seed=1;2", "seed=1&a=2"])
def test_seeds_that_cannot_be_read_are_answered_with_how_to_write_them(query: str) -> None:
    with pytest.raises(UsageError, match=r"write \?seed=3"):
        split_pattern(f"a/b?{query}")


@pytest.mark.parametrize("query", ["seed=3..1", "seed=1..99999999999"])
def test_a_span_of_no_seeds_or_too_many_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="write 1 to 10000"):
        split_pattern(f"a/b?{query}")


def test_an_id_with_two_seeds_is_refused() -> None:
    with pytest.raises(UsageError, match="names 2 seeds"):
        split("a/b?seed=1..2")


@pytest.mark.parametrize("pattern", ["a/" + "[" * 100_000, "a/b?seed=" + "9" * 5_000, "a/b?seed=1.." + "9" * 22, "a/b?seed=\u0663"])
def test_a_pattern_of_any_length_and_digits_is_refused_in_one_short_line(pattern: str) -> None:
    with pytest.raises(UsageError) as refused:
        split_pattern(pattern)
    assert len(str(refused.value)) < 300 and "write" in str(refused.value)
