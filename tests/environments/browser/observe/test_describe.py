"""States as text and as fingerprints."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exact.environments.browser.observe.describe import elements_text, fingerprint
from exact.environments.browser.observe.implied import colour_word
from exact.observation import Element


@given(st.text(max_size=30), st.text(max_size=30))
def test_each_element_is_one_line(name: str, value: str) -> None:
    line = elements_text([Element(id="1", role="textbox", name=name, value=value)])
    assert len(line.split("\n")) == 1


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        (Element(id="9", role="button", name="Go"), True),
        (Element(id="1", role="button", name="Go", states=("focused",)), True),
        (Element(id="1", role="button", name="Gone"), False),
        (Element(id="1", role="link", name="Go"), False),
        (Element(id="1", role="button", name="Go", value=""), False),
        (Element(id="1", role="button", name="Go", states=("disabled",)), False),
        (Element(id="1", role="button", name="Go", visible=False), False),
        (Element(id="1", role="button", name="Go", depth=1), False),
    ],
)
def test_a_fingerprint_holds_what_identifies_a_state(changed: Element, same: bool) -> None:
    usual = fingerprint("http://a.test/", [Element(id="1", role="button", name="Go")])
    assert (fingerprint("http://a.test/", [changed]) == usual) is same
    assert usual.volatile == ""


@pytest.mark.parametrize(
    ("css", "word"),
    [("rgb(255, 0, 0)", "red"), ("rgba(0, 0, 255, 0.5)", "blue"), ("rgba(0, 0, 0, 0)", ""), ("none", ""), ("rgb(120, 130, 125)", "grey")],
)
def test_colours_have_words(css: str, word: str) -> None:
    assert colour_word(css) == word
