"""Characters that are not seen are written out; what belongs to a visible emoji or letter stays."""

import unicodedata

import pytest

from exact.text import UNSEEN, inert

HIDDEN = (
    "\x00", "\x1b", "\x7f", "\x85", "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e",
    "\u2028", "\u202e", "\u2060", "\u2064", "\u2066", "\u2800", "\u3164", "\ufe00", "\ufe0e", "\ufe0f", "\ufeff", "\uffa0",
    "\U0001d173", "\U000e0041", "\U000e0100", "\U000e01ef", "\ufff0", "\ufff8", "\ue000", "\uf8ff", "\ufdd0", "\uffff", "\U0001fffe",
    "\U00013430", "\U0001343f", "\U0001bca3", "\U0001d159", "\U00050000", "\U000e0fff", "\U000f0000", "\U0010fffd", "\U0010ffff",
)  # fmt: skip


@pytest.mark.parametrize("character", HIDDEN, ids=lambda c: f"{ord(c):x}")
def test_a_character_that_is_not_seen_is_written_out(character: str) -> None:
    shown = inert(f"ig{character}nore")
    assert character not in shown and shown.startswith("ig") and shown.endswith("nore") and shown.isprintable()


@pytest.mark.parametrize(
    "text", ["🙂👩\u200d👩\u200d👧", "❤\ufe0f Like", "1\ufe0f⃣", "می\u200cخواهم", "क्\u200dष", "Ünïcode متن 按钮\ttab\nline"]
)
def test_what_joins_visible_letters_and_emoji_stays(text: str) -> None:
    assert inert(text) == text


SIGNS = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Signs around numbers, which are seen although their category is Cf."""
IGNORED = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0" + "".join(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)))
)
"""Characters of Unicode's property Default_Ignorable_Code_Point, as far as their category does not say it."""


def test_each_category_without_a_form_is_written_out_and_no_other() -> None:
    """A new Unicode, in a new Python, that has a further format character fails here: add it."""
    found = {each for each in map(chr, range(0x110000)) if UNSEEN.search(f"a{each}b")}
    formless = {each for each in map(chr, range(0x110000)) if unicodedata.category(each) in ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")}
    assert {*formless, *IGNORED} - {*SIGNS, *"\t\n"} - found == set()
    seen = {each for each in found - formless - {*IGNORED} if unicodedata.category(each) != "Cn"}
    assert seen == {"\u2800", "\U00016fe4", "\U0001d159"}  # blanks


def test_selectors_in_a_row_behind_an_emoji_are_shown() -> None:
    assert len(UNSEEN.findall("🙂" + "\ufe0f" + "\ufe0f" + "\U000e0150" * 3)) == 4
