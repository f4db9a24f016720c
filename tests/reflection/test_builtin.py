"""Lessons without a language model."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from exact.context import Evaluation
from exact.observation import Element
from exact.reflection.contrast import BuiltinReflector, outcome

names = st.text(alphabet=st.sampled_from('ab "\\\n[1]é.'), max_size=80)
elements = st.lists(st.builds(lambda role, name: (role, name), st.sampled_from(["button", "checkbox", "heading"]), names), max_size=5)


async def test_a_reflection_names_condition_action_expectation_outcome_and_alternative(make: Any) -> None:
    page = make.page(make.element("1", "button", "Submit"), make.element("2", "checkbox", "I agree"), title="Order")
    after = make.page(*page.elements, make.element("3", "alert", "Agree first"), title="Order")
    seen = make.surprise(page, "click [1]", after, expected=0.8, real=0.1, alternative="click [2]")
    text = (await BuiltinReflector().reflect(make.context("Order it", page), seen, "policy")).text
    for part in ('"Order"', 'click button "Submit"', "0.80", "0.10", 'alert "Agree first"', 'click checkbox "I agree"'):
        assert part in text


async def test_better_actions_are_recommended_and_worse_ones_are_not(make: Any) -> None:
    page = make.page(make.element("1", "button", "Go"))
    texts = {}
    for real in (0.1, 0.9):
        for kind in ("policy", "value"):
            seen = make.surprise(page, expected=0.5, real=real)
            texts[real, kind] = (await BuiltinReflector().reflect(make.context("x", page), seen, kind)).text
    assert "Prefer it" in texts[0.9, "policy"] and "Prefer it" not in texts[0.1, "policy"]
    assert texts[0.9, "value"].endswith("higher.") and texts[0.1, "value"].endswith("lower.")


SPACE_FILL = 'fill [1] "{}"'


@pytest.mark.parametrize("kind", ["policy", "value"])
async def test_a_wordy_page_does_not_crowd_out_the_advice(make: Any, kind: Any) -> None:
    words = "a b c d e f g h i j k l m n o p q r s t u v w x y z " * 5
    many = [make.element(str(i), "checkbox", f"{i} {words}", value=words, states=("checked",)) for i in range(9)]
    page, after = make.page(*many[:5], title=words), make.page(*many[5:], title=words)
    seen = make.surprise(page, f'fill [1] "{words}"', after, alternative=f'fill [2] "{words}"')
    text = (await BuiltinReflector().reflect(make.context(words, page), seen, kind)).text
    assert len(text.split()) <= 100
    assert text.endswith(" first." if kind == "policy" else " lower.")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(elements, elements, st.sampled_from(["policy", "value"]), names)
async def test_a_reflection_on_any_page_is_complete_within_100_words_and_quotes_page_text(
    make: Any, before: list[tuple[str, str]], later: list[tuple[str, str]], kind: Any, typed: str
) -> None:
    def shown(what: list[tuple[str, str]]) -> list[Element]:
        return [Element(id=str(i), role=r, name=n, value=n, states=("checked",)) for i, (r, n) in enumerate(what, 1)]

    page, after = make.page(*shown(before), title=typed), make.page(*shown(later))
    fill = SPACE_FILL.format(typed.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n"))
    seen = make.surprise(page, fill, after, alternative="drag [1] to [2]")
    text = (await BuiltinReflector().reflect(make.context("x", page), seen, kind)).text
    assert len(text.split()) <= 100
    assert text.endswith(".")
    assert "é" not in re.sub(r'"(?:[^"\\]|\\.)*"', "", text)


async def test_a_reflection_from_a_page_with_text_is_tainted(make: Any) -> None:
    empty, page = make.page(), make.page(make.element("1", "button", "Go"))
    for shown, tainted in ((empty, False), (page, True)):
        written = await BuiltinReflector().reflect(make.context("x", shown), make.surprise(shown), "policy")
        assert written.tainted is tainted


async def test_the_same_surprise_gives_the_same_id_at_another_time(make: Any) -> None:
    page = make.page(make.element("1", "button", "Go"))
    context, seen = make.context("x", page), make.surprise(page)
    first = await BuiltinReflector(run="a", clock=lambda: 1.0).reflect(context, seen, "policy")
    again = await BuiltinReflector(run="b", clock=lambda: 2.0).reflect(context, seen, "policy")
    assert (first.id, first.created, again.created) == (again.id, 1.0, 2.0)
    assert (await BuiltinReflector().reflect(context, seen, "value")).id != first.id


def test_an_outcome_is_distinguished_from_none(make: Any) -> None:
    page, ticked = (make.page(make.element("1", "checkbox", name), url="http://a/") for name in ("A", "B"))
    assert outcome(page, None) == "the attempt ended"
    assert outcome(page, page) == "nothing changed"
    assert outcome(page, ticked) == 'the page then showed checkbox "B"'
    assert outcome(page, make.page(url="http://b/")) == "another page came"


async def test_a_reflection_for_a_judge_keeps_the_reasons_of_its_evaluation(make: Any) -> None:
    before = make.page(make.element("1", "button", "Go"))
    judged = msgspec.structs.replace(make.surprise(before), judgement=Evaluation(value=0.8, rationale="The\ncart is full."))
    found = [await BuiltinReflector().reflect(make.context("Buy.", before), judged, kind) for kind in ("value", "policy")]
    assert [each.expected for each in found] == ["success with probability 0.80: The cart is full.", "success with probability 0.80"]
