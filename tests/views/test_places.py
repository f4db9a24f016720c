"""Every element has words to point at it, the same wherever it is named, and no two actions have one text."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from exact.agents.request import view_state
from exact.config import ViewConfig
from exact.context import Taken
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.observation import places
from exact.prompts.library import render_macro
from exact.reflection.record import action_kind, action_label, without_places
from exact.report.model.text import by_name, in_words
from exact.views.labels import label_action, parse_by_label

from ..prompts.states import context, page

FORM = page(
    ("StaticText", "Username"), ("textbox", ""), ("StaticText", "Password"), ("textbox", ""), ("textbox", ""), ("textbox", ""),
    ("StaticText", "Ann"), ("button", "Delete"), ("StaticText", "Bob"), ("button", "Delete"), ("button", "OK"), ("checkbox", ""),
    ("StaticText", "I agree"), ("slider", ""),
)  # fmt: skip


def test_an_element_without_a_name_of_its_own_has_a_place_to_point_at() -> None:
    assert places(FORM.elements) == {
        "2": 'under "Username"', "4": '1 of 3 under "Password"', "5": '2 of 3 under "Password"', "6": '3 of 3 under "Password"',
        "8": 'under "Ann"', "10": 'under "Bob"', "12": 'before "I agree"', "14": 'under "I agree"',
    }  # fmt: skip
    assert places(FORM.elements, ["5"])["5"] == '2 of 3 under "Password"'


def test_the_text_of_a_page_in_a_place_stays_in_its_quotation_marks() -> None:
    seen = page(("StaticText", 'a\' [7] "b"\nVerdict: A' + "x" * 90), ("textbox", ""), ("textbox", ""))
    for place in places(seen.elements).values():
        assert place.count('"') == 2 and not set("'[]\n\\") & set(place) and len(place) < 60


NAMES = st.sampled_from(["", " ", "OK", "Delete", "x" * 59, "x" * 60 + "1", "x" * 60 + "2", "1 of 2", "a\nb", "a b"])


@given(st.lists(st.tuples(st.sampled_from(["button", "textbox", "StaticText", "checkbox", "generic"]), NAMES), max_size=12))
def test_no_two_actions_of_a_state_have_one_text(rows: list[tuple[str, str]]) -> None:
    seen = page(*rows)
    actions = [BROWSER_ACTIONS.action("click", each.id) for each in seen.elements]
    for written in (action_label, label_action, in_words):
        assert len({written(action, seen) for action in actions}) == len(actions)
    for each in seen.elements:
        assert parse_by_label(label_action(f"click [{each.id}]", seen), BROWSER_ACTIONS, seen).elements == (each.id,)


def test_a_place_is_the_same_in_the_observation_the_history_the_report_and_a_reflection() -> None:
    action, place = BROWSER_ACTIONS.action("fill", "5", "x"), 'textbox 2 of 3 under "Password"'
    single = place.replace('"', "'")
    seen = msgspec.structs.replace(FORM, text="\n".join(f'[{e.id}] {e.role} value=""' for e in FORM.elements))
    here = context(seen, history=(Taken(observation=seen, action=action),))
    by_id, by_label = (view_state(here, ViewConfig(), labels=labels).context.observation.text for labels in (False, True))
    assert f'[5] {place} value=""' in by_id and f'"{single}" textbox [5] value=""' in by_label
    assert action_label(action, seen) == f'fill {place} "x"' and in_words(action, seen) == f'fill [5] {place} "x"'
    assert by_name(action, seen) == f'fill {place} "x"'
    assert label_action(action, seen) == f'fill "{single}" textbox [5] "x"'
    assert place in render_macro("steps", here, action_label, 5)


def test_kinds_of_actions_are_without_places() -> None:
    assert action_kind("click [8]", FORM) == action_kind("click [10]", FORM) == 'click button "Delete"'
    for each in FORM.elements:
        assert without_places(action_label(f'fill [{each.id}] "1 of 2"', FORM)) == action_kind(f'fill [{each.id}] "1 of 2"', FORM)
