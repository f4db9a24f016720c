"""Text made visible and short."""

from hypothesis import given
from hypothesis import strategies as st

from exact.observation import Element, Observation
from exact.report.model.text import Texts, in_words, one_line, share
from exact.report.page import embedded
from exact.text import inert

SEEN = Observation(text="", fingerprint="", elements=(Element(id="3", role="button", name="Ok"), Element(id="4", role="list")))


def test_an_action_names_its_elements_in_words() -> None:
    assert in_words("drag [3] to [4]", SEEN) == 'drag [3] button "Ok" to [4] list'


def test_an_id_within_a_text_stays_text() -> None:
    assert in_words('fill [3] "see [4]"', SEEN) == 'fill [3] button "Ok" "see [4]"'


def test_an_unknown_element_and_a_state_unseen_stay_as_written() -> None:
    assert in_words("click [9]", SEEN) == in_words("click [9]", None) == "click [9]"


@given(st.text())
def test_no_invisible_character_is_left(text: str) -> None:
    assert not any((ord(c) < 32 and c not in "\n\t") or c in "\x7f\u2028\u2029\u202e\u2066" for c in inert(text))


@given(st.text(), st.integers(2, 50))
def test_one_line_has_no_breaks(text: str, limit: int) -> None:
    assert "\n" not in one_line(text, limit)


@given(st.text())
def test_embedded_data_cannot_end_its_script(text: str) -> None:
    assert not set(embedded({"text": text})) & set("<>&\u2028\u2029")


@given(st.lists(st.integers(0, 1000)), st.integers(0, 5000))
def test_a_share_never_passes_the_total_and_cuts_only_if_it_must(sizes: list[int], total: int) -> None:
    cap = share(sizes, total)
    assert sum(min(size, cap) for size in sizes) <= total
    assert cap >= max(sizes, default=0) or sum(sizes) > total


def test_equal_texts_are_kept_once_and_only_long_ones_are_cut() -> None:
    texts = Texts()
    assert [texts.add(text) for text in ("short", "x" * 1000, "short", "")] == [0, 1, 0, None]
    short, long = texts.within(205)
    assert short == "short"
    assert long.startswith("x" * 200 + "\n…") and "800 more characters" in long
