"""Rules for texts, numbers and addresses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.benchmarks.webarena import locate, text


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("Don't pay $5.99!", ["Do", "n't", "pay", "$", "5.99", "!"]),
        ("(a/b), 10:30; it's 1,000.", ["(", "a/b", ")", ",", "10:30", ";", "it", "'s", "1,000", "."]),
        ("", []),
        ("...", ["..."]),
        ("Ticket 17. It is bob's.", ["Ticket", "17", ".", "It", "is", "bob", "'s", "."]),
        ('It is "room 2.11."\nSee (Ann.) there', ["It", "is", '"', "room", "2.11", ".", '"', "See", "(", "Ann", ".", ")", "there"]),
        ("e.g. j. smith at 9 a.m.", ["e.g.", "j.", "smith", "at", "9", "a.m", "."]),
        ("a 12'' disc, “i’ve” said ``x``", ["a", "12", "''", "disc", ",", "“", "i", "’", "ve", "”", "said", "``", "x", "``"]),
        ("The color is 'blue'.", ["The", "color", "is", "'", "blue", "'", "."]),
        ("1,200–1,300 or a—b", ["1,200", "–", "1,300", "or", "a", "—", "b"]),
        ("I cannot, you can't: 'tis they're", ["I", "can", "not", ",", "you", "ca", "n't", ":", "'", "tis", "they", "'re"]),
        ("'mike's' or 'u.s.'", ["'", "mike", "'s", "'", "or", "'", "u.s", ".", "'"]),
        ("well... a.b x. ", ["well", "...", "a.b", "x", "."]),
    ],
)
def test_tokens_are_words_and_signs(said: str, parts: list[str]) -> None:
    assert text.tokens(said) == parts


@given(st.text())
def test_no_sign_is_lost_in_tokens(said: str) -> None:
    assert "".join(text.tokens(said)) == "".join(said.split())


def test_a_single_token_is_looked_for_as_one() -> None:
    assert not text.includes("0", "10 of them", "visualwebarena") and text.includes("10", "10 of them", "visualwebarena")
    assert text.includes("10 of", "It is 10 of them", "visualwebarena")


def test_a_word_that_ends_an_inner_sentence_is_a_token() -> None:
    assert text.includes("17", "Ticket 17. It is owned by bob.", "visualwebarena")
    assert text.includes("dave", "Weekdays: Dave. Weekends: Alice.", "visualwebarena")


def test_webarena_does_so_for_one_character_that_is_the_only_reference() -> None:
    assert text.includes("0", "10", "webarena") and not text.includes("0", "10", "webarena", alone=True)
    assert text.includes("10", "110", "webarena", alone=True)
    assert text.includes("0", "$0.00", "webarena", alone=True) and not text.includes("0", "0.50", "webarena", alone=True)


@pytest.mark.parametrize(
    ("value", "comparisons", "holds"),
    [(5, "== 5", True), (5, "< 5", False), (5, "> 5", False), (5, "<= 5", True), (5, "< 3 |OR| >= 5", True), (1200, ">= 1,000", True)],
)
def test_numbers_are_compared(value: float, comparisons: str, holds: bool) -> None:
    assert text.fulfils(value, comparisons) is holds


@pytest.mark.parametrize(
    ("said", "value"),
    [
        *((" 1,200.5 ", 1200.5), ("-3", -3), ("+.5", 0.5), ("7.", 7)),
        *((said, None) for said in ("inf", "-Infinity", "nan", "1e9", "1_000", "\u0661\u0662", "", ",", ".", "1.2.3")),
    ],
)
def test_only_digits_with_commas_and_a_decimal_point_are_a_number(said: str, value: float | None) -> None:
    assert text.number(said) == value


@given(st.integers(), st.integers())
def test_exactly_one_of_less_equal_and_greater_holds(value: int, bound: int) -> None:
    value, bound = value % 10**6, bound % 10**6
    assert sum(text.fulfils(value, f"{sign} {bound}") for sign in ("<", "==", ">")) == 1


@pytest.mark.parametrize(
    ("wanted", "url", "rule", "dialect", "holds"),
    [
        ("http://a/b", "http://a/b/", "EXACT", "visualwebarena", True),
        ("http://a/b", "http://a/bc", "EXACT", "visualwebarena", False),
        ("http://localhost:1/b", "http://127.0.0.1:1/b", "EXACT", "visualwebarena", True),
        ("http://a/b |OR| http://a/c", "http://a/c", "EXACT", "visualwebarena", True),
        ("http://a/b", "http://a/b?x=1", "GOLD in PRED", "visualwebarena", True),
        ("http://a/b?x=1", "http://a/b?y=2&x=1", "GOLD in PRED", "webarena", True),
        ("http://a/b?x=1", "http://a/b?x=2", "GOLD in PRED", "webarena", False),
        ("http://a/b", "https://a/b/c", "GOLD in PRED", "webarena", True),
    ],
)
def test_addresses_match(wanted: str, url: str, rule: str, dialect: str, holds: bool) -> None:
    assert locate.matches(wanted, url, rule, dialect) is holds  # type: ignore[arg-type]
