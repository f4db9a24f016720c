"""Both forms of actions, and calls that hide something."""

from __future__ import annotations

import pytest

from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.errors import ActionError
from exact.interop.openenv.actions import read_action
from exact.observation import Element


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("click [12]", "click [12]"),
        ("click('12')", "click [12]"),
        ('click("12", button="left")', "click [12]"),
        ("fill('3', 'Ann \"the\" fox')", 'fill [3] "Ann \\"the\\" fox"'),
        ("fill(bid='3', value='a')", 'fill [3] "a"'),
        ("press('3', 'ctrl+a')", 'press "Control+a"'),
        ("select_option('5', ['Blue'])", 'select [5] "Blue"'),
        ("drag_and_drop('1', '2')", "drag [1] to [2]"),
        ("scroll(0, -200)", "scroll up"),
        ("scroll(delta_x=0, delta_y=200)", "scroll down"),
        ("mouse_click(10, 20.0)", "click_at 10 20"),
        ("clear('3')", 'fill [3] ""'),
        ("dblclick('4')", "double_click [4]"),
        ("send_msg_to_user('42')", 'stop "42"'),
        ("  hover('4')  ", "hover [4]"),
        ('fill [3] "f(x)"', 'fill [3] "f(x)"'),
        ("click('12', 'right')", "right_click [12]"),
        ("click(bid='12', button='right', modifiers=[])", "right_click [12]"),
        ("click('12', 'left', ['Shift', 'Control'])", 'click_with [12] "Control+Shift"'),
        ("fill('3', 'a', True)", 'fill [3] "a"'),
    ],
)
def test_an_action_is_read_in_both_forms(written: str, meant: str) -> None:
    action = read_action(written, BROWSER_ACTIONS)
    assert action is not None and action.key == meant


@pytest.mark.parametrize("written", ["noop()", "noop(500)", "noop(wait_ms=500)", "scroll(0, 0)"])
def test_noop_is_no_action(written: str) -> None:
    assert read_action(written, PAGE_ACTIONS) is None


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("click('1', 'middle')", "the button 'middle' is not supported here: use 'left' or 'right'"),
        ("click('1', ['left'])", "is not supported here"),
        ("click('1', 'right', ['Control'])", "modifiers"),
        ("click('1', modifiers=['Hyper'])", "unknown modifier 'Hyper'"),
        ("dblclick('1', 'right')", "the button 'right'"),
        ("dblclick('1', modifiers=['Alt'])", "modifiers"),
        ("mouse_click(1, 2, 'right')", "the button 'right'"),
        ("mouse_click([1], 2)", "neither a text nor a number"),
        ("click('1', 'left', [], 'again')", "too many positional arguments"),
        ("click('1', times=2)", "unexpected keyword argument 'times'"),
        ("hover('1', 'right')", "too many positional arguments"),
        ("scroll(200, 0)", "up or down only"),
        ("scroll(200, -200)", "up or down only"),
        ("select_option('5', ['Blue', 'Red'])", "2 options are not supported"),
        ("upload_file('5', ['a', 'b'])", "2 files are not supported"),
        ("right_click('1', button='left')", "no action here"),
        (f"click('{'a' * 5000}')", "does not fit"),
    ],
)
def test_an_argument_that_would_be_ignored_is_refused_in_words(written: str, words: str) -> None:
    with pytest.raises(ActionError, match=words) as refused:
        read_action(written, BROWSER_ACTIONS)
    assert len(str(refused.value)) < 400


_PAGE = [
    Element(id="1", role="checkbox", states=("checked",)),
    Element(id="2", role="textbox", states=("focused",)),
    Element(id="3", role="textbox"),
    Element(id="4", role="button"),
]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("check('1')", None),
        ("uncheck('1')", "click [1]"),
        ("focus('2')", None),
        ("focus('3')", "click [3]"),
        ("press('2', 'Enter')", 'press "Enter"'),
    ],
)
def test_a_call_that_names_a_state_acts_only_until_it_is_reached(written: str, meant: str | None) -> None:
    action = read_action(written, BROWSER_ACTIONS, _PAGE)
    assert (action and action.key) == meant


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("check('4')", "cannot be checked"),
        ("focus('4')", "a click would activate"),
        ("press('3', 'Enter')", r"the focus is at \[2\], not at \[3\]"),
        ("press('9', 'Enter')", "there is no element '9'"),
    ],
)
def test_a_call_that_would_reach_another_element_is_refused(written: str, words: str) -> None:
    with pytest.raises(ActionError, match=words):
        read_action(written, BROWSER_ACTIONS, _PAGE)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("click(__import__('os').system('id'))", "neither a text nor a number"),
        ("click('1'); click('2')", "is no call"),
        ("click('1').then(click('2'))", "more than one call"),
        ("click()", "missing a required argument: 'bid'"),
        ("jump('1')", "no action here"),
        ("new_tab()", "no action here"),
        ("click(", "cannot read"),
        ("click('1'", "cannot read"),
        ("click(" + "(" * 500 + ")" * 501, "is no call"),
        ("", "no action"),
        ("scroll('a', 'b')", "needs two numbers"),
    ],
)
def test_what_is_no_action_is_refused_and_never_run(written: str, words: str) -> None:
    with pytest.raises(ActionError, match=words):
        read_action(written, PAGE_ACTIONS)
