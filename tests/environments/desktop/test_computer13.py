import pytest

from exact.environments.desktop.computer13 import read_computer13 as computer13
from exact.errors import ActionError


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ({"action_type": "MOVE_TO", "parameters": {"x": 3, "y": 4.4}}, ["move_to 3 4"]),
        ({"action_type": "CLICK", "parameters": {}}, ["click_here left 1"]),
        ({"action_type": "CLICK", "parameters": {"button": "right", "x": 1, "y": 2}}, ["right_click_at 1 2"]),
        ({"action_type": "CLICK", "parameters": {"button": "middle", "x": 1, "y": 2}}, ["move_to 1 2", "click_here middle 1"]),
        ({"action_type": "DOUBLE_CLICK", "parameters": {"x": 1, "y": 2}}, ["double_click_at 1 2"]),
        ({"action_type": "DRAG_TO", "parameters": {"x": 9, "y": 2}}, ["drag_to 9 2"]),
        ({"action_type": "SCROLL", "parameters": {"dx": 0, "dy": -3}}, ["scroll_by 0 -3"]),
        ({"action_type": "HOTKEY", "parameters": {"keys": ["ctrl", "shift", "t"]}}, ['press "Control+Shift+t"']),
        ({"action_type": "KEY_DOWN", "parameters": {"key": "shift"}}, ['key_down "Shift"']),
        ("WAIT", ["wait"]),
        ("FAIL", ["fail"]),
        ("DONE", ['stop ""']),
    ],
)
def test_each_form_of_osworld_is_an_action_of_ours(told: dict[str, object] | str, meant: list[str]) -> None:
    assert [action.key for action in computer13(told)] == meant


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ({"action_type": "FLY"}, "no action of computer_13"),
        ({"action_type": "TYPING", "parameters": {}}, "TYPING needs text"),
        ({"action_type": "CLICK", "parameters": {"x": 5}}, "CLICK needs y"),
        ({"action_type": "CLICK", "parameters": {"num_clicks": 40}}, "no number of clicks"),
        ({"action_type": "MOVE_TO", "parameters": {"x": -5, "y": 1}}, "is nowhere"),
        ({"action_type": "PRESS", "parameters": {"key": "entr"}}, "did you mean 'Enter'"),
    ],
)
def test_an_invalid_action_is_refused_with_the_way_out(told: dict[str, object], why: str) -> None:
    with pytest.raises(ActionError, match=why):
        computer13(told)
