"""Elements by role and name, before their ids are known."""

import pytest

from exact.environments.browser.act.grammar import resolve_names
from exact.errors import ActionError
from exact.observation import Element

FORM = (
    Element(id="1", role="button", name="Sign in with a key"),
    Element(id="2", role="textbox", name="User name"),
    Element(id="3", role="button", name="Sign in"),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('click [button "Sign in"]', "click [3]"),
        ('click ["with a key"]', "click [1]"),
        ('fill [Textbox "user"] "[button \\"x\\"]"', 'fill [2] "[button \\"x\\"]"'),
        ('drag ["User name"] to ["Sign in"]', "drag [2] to [3]"),
        ("click [3]", "click [3]"),
    ],
)
def test_names_become_ids(text: str, found: str) -> None:
    assert resolve_names(text, FORM) == found


def test_the_nearest_name_is_told() -> None:
    with pytest.raises(ActionError, match="there is no button 'Sing in': did you mean 'Sign in'"):
        resolve_names('click [button "Sing in"]', FORM)
    with pytest.raises(ActionError, match="there is no link 'x': there are none"):
        resolve_names('click [link "x"]', FORM)
