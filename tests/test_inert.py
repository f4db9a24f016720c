"""Characters that are not seen are written out; what belongs to a visible emoji or letter stays."""

import pytest

from exact.text import UNSEEN, inert

HIDDEN = (
    "\x00", "\x1b", "\x7f", "\x85", "\u00ad", "\u034f", "\u061c", "\u115f", "\u180e", "\u200b", "\u200c", "\u200d", "\u200e",
    "\u2028", "\u202e", "\u2060", "\u2064", "\u2066", "\u2800", "\u3164", "\ufe00", "\ufe0e", "\ufe0f", "\ufeff", "\uffa0",
    "\U0001d173", "\U000e0041", "\U000e0100", "\U000e01ef",
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


def test_selectors_in_a_row_behind_an_emoji_are_shown() -> None:
    assert len(UNSEEN.findall("🙂" + "\ufe0f" + "\ufe0f" + "\U000e0150" * 3)) == 4
