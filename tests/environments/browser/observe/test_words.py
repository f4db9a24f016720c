"""Which text repeats which."""

from __future__ import annotations

import pytest

from exact.environments.browser.observe.implied import is_run, repeated


@pytest.mark.parametrize(
    ("texts", "name", "value", "found"),
    [
        (["Send", "now"], "Send now", "", [True, True]),
        (["Cart", "3"], "Cart 3", "", [True, True]),
        (["400"], "Account 4400", "", [False]),
        (["400"], "Account 400", "", [False]),
        (["Total", "Total sum"], "Total sum", "", [True, True]),
        (["Read more"], "Read more about cats", "", [True]),
        (["Total", "Total"], "Total of", "", [True, False]),
        (["12", "Ann"], "", "Ann 12", [True, True]),
        (["1"], "1", "", [True]),
        (["x"], "", "", [False]),
    ],
)
def test_a_text_repeats_whole_words_and_a_number_only_a_whole_name(texts: list[str], name: str, value: str, found: list[bool]) -> None:
    assert repeated(texts, name, value) == found


def test_words_follow_one_another_in_a_text() -> None:
    assert is_run("read more", "Please read more.") and not is_run("1", "1-10 of 110")
