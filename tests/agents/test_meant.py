"""Actions as instruct models of half a billion to two billion parameters wrote them, in states where they mean one thing or none."""

from __future__ import annotations

import pytest

from exact.agents.parse import parse_action
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.errors import ActionError
from exact.observation import Element, Observation
from tests.prompts.states import page

LOGIN = page(("textbox", ""), ("textbox", ""), ("button", "Login"))
BOXES = page(("checkbox", "USa"), ("checkbox", "DKkQH"), ("button", "Submit"), ("heading", "Enter"))
FIELDS = page(("LabelText", "Username"), ("textbox", ""), ("LabelText", "Password"), ("textbox", ""))
FILLED = Observation(text="", fingerprint="", elements=(Element(id="1", role="textbox", name="", value="2uMiJ"),))
TWICE = page(("button", "Login"), ("link", "Login"))


def lists(*options: tuple[str, ...]) -> Observation:
    """Return a page with lists that have these options, and a button."""
    elements, number = list[Element](), 0
    for each in options:
        elements.append(Element(id=f"l{len(elements)}", role="combobox", name="", depth=1))
        for name in each:
            number += 1
            elements.append(Element(id=str(number), role="option", name=name, depth=2))
    elements.append(Element(id="9", role="button", name="Submit", depth=1))
    return Observation(text="", fingerprint="", elements=tuple(elements))


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize(
    ("said", "observation", "key"),
    [
        ("Action: select [2]", BOXES, "click [2]"),
        ('Action: select checkbox "DKkQH"', BOXES, "click [2]"),
        ("Action: select checkbox [2]", BOXES, "click [2]"),
        ('Action: press "Enter"', BOXES, 'press "Enter"'),
        ('Action: select combobox "Bobine"', lists(("Ann", "Bobine"), ("Cid",)), 'select [l0] "Bobine"'),
        ("Action: select [3]", lists(("Ann", "Bobine"), ("Cid",)), 'select [l3] "Cid"'),
        ('Action: click [3] button "Submit"', BOXES, "click [3]"),
        ('Action: click [1] checkbox "USa"', BOXES, "click [1]"),
        ('Action: fill [1] textbox "Ann"', LOGIN, 'fill [1] "Ann"'),
        ('Action: fill [1] textbox "City" "Ann"', page(("textbox", "City")), 'fill [1] "Ann"'),
        ('Action: fill [2] textbox under "Username" value="vina"', FIELDS, 'fill [2] "vina"'),
        ('Action: click [4] textbox under "Password"', FIELDS, "click [4]"),
        ('Action: click [1] textbox value="2uMiJ"', FILLED, "click [1]"),
        ("Action: drag [1] button to [2] link", TWICE, "drag [1] to [2]"),
        ("Action: click [3].", BOXES, "click [3]"),
        ('Action: click [3] (the "Submit" button)', BOXES, "click [3]"),
        ("Action: click [3] # send it", BOXES, "click [3]"),
        ("Action: click [3] to send the form", BOXES, "click [3]"),
        ('Action: click "Submit" button [3], because all is filled in.', BOXES, "click [3]"),
        ('Action: fill [1] "a (b) to c" (into "City")', page(("textbox", "City")), 'fill [1] "a (b) to c"'),
        ('Action: click("Submit" button [3])', BOXES, "click [3]"),
        ("Action: click(3)", BOXES, "click [3]"),
        ('Action: fill([1], "Ann, or so");', LOGIN, 'fill [1] "Ann, or so"'),
        ('Action: fill(id=1, text="Ann")', LOGIN, 'fill [1] "Ann"'),
        ('Action: stop("done")', BOXES, 'stop "done"'),
    ],
)
def test_an_action_with_one_meaning_is_read(said: str, observation: Observation, key: str, labels: bool) -> None:
    assert parse_action(said, BROWSER_ACTIONS, observation, labels=labels).action.key == key


@pytest.mark.parametrize(
    ("said", "observation"),
    [
        ('press "Login"', LOGIN),
        ('select "USa" and go on', BOXES),
        ("select [3]", LOGIN),
        ("select [3]", page(("heading", "A"), ("heading", "B"), ("heading", "C"))),
        ("select [1]", LOGIN),
        ('select "Ann"', lists(("Ann",), ("Ann",))),
        ('click [3] link "Submit"', BOXES),
        ('click [3] button "USa"', BOXES),
        ('fill [1] button "Ann"', LOGIN),
        ('click [2] textbox under "Password"', FIELDS),
        ('click [1] textbox value="other"', FILLED),
        ('fill [1] textbox "City"', page(("textbox", "City"))),
        ('click [3] (the "USa" checkbox)', BOXES),
        ("click [3] (if [1] is ticked)", BOXES),
        ("click [3] or [2]", BOXES),
        ("click [3], then stop", BOXES),
        ("click [3] # not yet", BOXES),
        ("click [3] (don't)", BOXES),
        ("click [3] twice", BOXES),
        ("click(3, 2)", BOXES),
        ("click(the button)", BOXES),
        ('fill [1] "Ann" into "Bo"', LOGIN),
    ],
)
def test_an_action_without_one_meaning_is_asked_for_again(said: str, observation: Observation) -> None:
    for labels in (False, True):
        with pytest.raises(ActionError):
            parse_action(f"Action: {said}", BROWSER_ACTIONS, observation, labels=labels)


def test_a_verb_that_is_not_offered_is_not_meant() -> None:
    with pytest.raises(ActionError):
        parse_action("Action: select [1]", BROWSER_ACTIONS.without(["click"]), BOXES)


@pytest.mark.parametrize("times", [1, 20_000])
@pytest.mark.parametrize("part", [" ", "(", "()", "to ", ".", '"a" ', "a=,", " ,", "- ", "\\"])
@pytest.mark.parametrize("begins", ["clack [1]", "click [9]", "click(", "fill("])
def test_an_answer_of_any_length_is_soon_refused(begins: str, part: str, times: int) -> None:
    with pytest.raises(ActionError):
        parse_action(f"Action: {begins} {part * times} x", BROWSER_ACTIONS, BOXES)
