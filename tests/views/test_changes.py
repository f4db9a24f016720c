"""Changes between two texts lose nothing: the text before is rebuilt from the text now."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from exact.observation import Observation
from exact.views.view import observation_text, show_changes

LINE = st.sampled_from(["", '[1] button "a"', '[2] button "a"', "-", "+", "line 1:", "-x", "+line 2:", '  [3] text "b"'])
TEXT = st.lists(LINE, min_size=1, max_size=12).map("\n".join)


def rebuilt(shown: str, changes: str, marks: str) -> str:
    """Return the text that is not shown, by what a prompt says of the form. `marks`: that of its lines, then that of the shown text's."""
    lines, shift = shown.split("\n"), 0
    for place, block in re.findall(r"^line (\d+):\n((?:[-+].*(?:\n|$))*)", changes, re.M):
        marked = block.removesuffix("\n").split("\n")
        old, new = ([line[1:] for line in marked if line[:1] == mark] for mark in marks)
        at = int(place) - 1 + shift
        assert lines[at : at + len(new)] == new
        lines[at : at + len(new)] = old
        shift += len(old) - len(new)
    return "\n".join(lines)


@given(TEXT, TEXT)
@example("a\nb\nc", "b\nc\nd")
def test_either_text_is_rebuilt_from_the_other_and_the_changes(before: str, now: str) -> None:
    states = Observation(text=before), Observation(text=now)
    if changes := show_changes(*states):
        assert rebuilt(now, changes, "-+") == before and len(changes) < len(before)
    if changes := show_changes(*states, "before"):
        assert rebuilt(before, changes, "+-") == now and len(changes) < len(now)


@given(TEXT, st.data())
def test_a_small_change_of_a_long_text_is_shown_as_changes(text: str, data: st.DataObject) -> None:
    long = "\n".join(f"[{number}] row" for number in range(60)) + "\n" + text
    lines = long.split("\n")
    lines[data.draw(st.integers(0, len(lines) - 1))] = data.draw(LINE)
    states = Observation(text=long), Observation(text="\n".join(lines))
    if long != states[1].text:
        assert rebuilt(states[1].text, show_changes(*states), "-+") == long
        assert rebuilt(long, show_changes(*states, "before"), "+-") == states[1].text


def test_a_long_page_with_one_changed_line_is_shown_in_three_lines() -> None:
    lines = [f"[{number}] checkbox" for number in range(100)]
    changed = [*lines[:40], "[40] checkbox checked", *lines[41:]]
    found = show_changes(Observation(text="\n".join(lines)), Observation(text="\n".join(changed)))
    assert found == "line 41:\n-[40] checkbox\n+[40] checkbox checked"


@pytest.mark.parametrize(
    "other", [{"url": "http://b"}, {"title": "b"}, {"tabs": ("http://c",)}, {"downloads": ("f (1 byte)",)}, {"html": "<p>"}]
)
def test_addresses_titles_tabs_downloads_and_html_are_compared_too(other: dict[str, Any]) -> None:
    before = Observation(text="\n".join(map(str, range(50))), url="http://a", title="a", html="<b>")
    now = msgspec.structs.replace(before, **other)
    changes = show_changes(before, now)
    assert changes and rebuilt(observation_text(now), changes, "-+") == observation_text(before)
