"""Both forms of actions, and calls that hide something."""

from __future__ import annotations

import pytest

from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.errors import ActionError
from exact.interop.openenv.actions import read_action


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
    ],
)
def test_an_action_is_read_in_both_forms(written: str, meant: str) -> None:
    action = read_action(written, BROWSER_ACTIONS)
    assert action is not None and action.key == meant


def test_noop_is_no_action() -> None:
    assert read_action("noop()", PAGE_ACTIONS) is None and read_action("noop(500)", PAGE_ACTIONS) is None


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("click(__import__('os').system('id'))", "neither a text nor a number"),
        ("click('1'); click('2')", "is no call"),
        ("click('1').then(click('2'))", "more than one call"),
        ("click()", "lacks an argument"),
        ("jump('1')", "no action here"),
        ("new_tab()", "no action here"),
        ("click(", "cannot read"),
        ("click('1'", "cannot read"),
        ("click(" + "(" * 500 + ")" * 501, "is no call"),
        ("", "no action"),
        ("scroll('a', 'b')", "lacks an argument"),
    ],
)
def test_what_is_no_action_is_refused_and_never_run(written: str, words: str) -> None:
    with pytest.raises(ActionError, match=words):
        read_action(written, PAGE_ACTIONS)
