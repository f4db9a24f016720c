"""Lessons as records."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.context import Reflection
from exact.reflection.record import STATE, action_label, confidence, content_id, quoted, reflection_record, shortened, site


def test_a_label_says_role_and_name_in_place_of_the_id(make: Any) -> None:
    page = make.page(make.element("3", "textbox", "Name"), make.element("4", "listitem", "One"), make.element("5", "listitem", ""))
    assert action_label('fill [3] "Ann"', page) == 'fill textbox "Name" "Ann"'
    assert action_label("drag [4] to [5]", page) == 'drag listitem "One" to listitem'


def test_a_label_leaves_typed_text_and_unknown_ids_as_they_are(make: Any) -> None:
    page = make.page(make.element("3", "textbox", "Name"))
    assert action_label('fill [9] "[3] \\" [3]"', page) == 'fill [9] "[3] \\" [3]"'


@given(st.text(max_size=200), st.integers(1, 80))
def test_quoted_text_is_one_line_and_cannot_leave_its_quotes(text: str, limit: int) -> None:
    quote = quoted(text, limit)
    assert len(json.loads(quote)) <= limit
    assert json.loads(quote).isprintable()


@given(st.text(max_size=3 * STATE))
def test_shortening_twice_is_shortening_once(text: str) -> None:
    short = shortened(text)
    assert len(short) <= STATE
    assert text.startswith(short)
    assert shortened(short) == short


def test_a_reflection_is_cut_at_100_words_and_keeps_its_provenance(make: Any) -> None:
    page = make.page(make.element("1", "button", "Go"))
    context = make.context("Press Go", page, task="suite/a?seed=7")
    written = reflection_record(context, make.surprise(page, node=5), "policy", "word " * 150, run="r1", model="m", created=3.0)
    assert len(written.text.split()) == 100
    assert (written.task, written.site, written.node, written.run) == ("suite/a?seed=7", "127.0.0.1", 5, "r1")
    assert (written.action, written.action_label, written.outcome) == ("click [1]", 'click button "Go"', 0.1)


def test_the_id_depends_on_what_is_said_not_on_when_or_in_which_run(make: Any) -> None:
    one = make.reflection("Press Go")
    again = msgspec.structs.replace(one, created=9.0, run="other", node=4, task="suite/a?seed=5")
    assert content_id(again) == one.id
    for field in ("text", "instruction", "state", "action"):
        assert content_id(msgspec.structs.replace(one, **{field: "else"})) != one.id
    assert content_id(msgspec.structs.replace(one, kind="value")) != one.id


def test_the_site_is_the_host_without_port_and_empty_where_there_is_none(make: Any) -> None:
    assert site(make.context("x", make.page(url="http://shop.test:8080/cart"))) == "shop.test"
    assert site(make.context("x", make.page(url="http://[bad"))) == ""
    assert site(make.context("x", make.page(url="data:text/html,hi"))) == ""


def test_a_reflection_carries_the_fingerprint_of_its_state(make: Any) -> None:
    before, after = make.page(make.element("1", "button", "Go")), make.page(make.element("1", "button", "Gone"))
    seen = make.surprise(before, after=after)
    written = {kind: reflection_record(make.context("Press Go", before), seen, kind, "Look.") for kind in ("policy", "value")}
    assert (written["policy"].fingerprint, written["value"].fingerprint) == (before.fingerprint, after.fingerprint)
    assert content_id(msgspec.structs.replace(written["policy"], fingerprint="")) == written["policy"].id
    assert written["policy"].state != written["value"].state


@pytest.mark.parametrize(
    ("source", "outcome", "sure"),
    [
        ("judge", 0.5, 0.0), ("judge", 0.1, 0.8), ("judge", None, 0.0), ("evaluator", 0.5, 1.0), ("evaluator", None, 1.0),
        ("", None, 1.0), ("", 0.5, 0.0),
    ],
)  # fmt: skip
def test_an_unevaluated_attempt_has_no_certainty_and_a_handwritten_reflection_is_certain(
    make: Any, source: str, outcome: float | None, sure: float
) -> None:
    written = msgspec.structs.replace(make.reflection("Press Go"), outcome=outcome, outcome_source=source)
    assert confidence(written) == pytest.approx(sure)


def test_a_handwritten_reflection_names_no_source_and_an_older_one_names_the_judge() -> None:
    by_hand = {"id": "x", "kind": "policy", "text": "Look.", "instruction": "Press Go", "state": "", "action": "click"}
    assert confidence(msgspec.convert(by_hand, Reflection)) == 1.0 and msgspec.convert(by_hand, Reflection).fingerprint == ""
    assert confidence(msgspec.convert({**by_hand, "outcome": None, "outcome_source": "judge"}, Reflection)) == 0.0
