"""Calls of a model's own computer tool: the actions that they stand for, and the policy that offers it."""

import msgspec
import pytest

from exact.agents.agent import build_agent
from exact.agents.policy.computer import ground_call
from exact.agents.policy.llm import LLMPolicy
from exact.config import PolicyConfig, ViewConfig, parse
from exact.context import Taken
from exact.environments.browser.act.grammar import BROWSER_ACTIONS, PAGE_ACTIONS
from exact.environments.desktop.grammar import COMPUTER_13, ELEMENT_ACTIONS
from exact.errors import ActionError, AnswerError, UsageError
from exact.models.base import Display, Image, ToolCall
from exact.models.scripted import Reply, ScriptedModel
from exact.models.tokens import size
from exact.observation import Box, Element, Observation

from ..prompts.states import apart, context
from ..views.test_view import png

PAGE = (
    Element(id="1", role="RootWebArea", name="Shop", box=Box(0, 0, 800, 600)),
    Element(id="2", role="button", name="Buy", box=Box(100, 100, 60, 20)),
    Element(id="3", role="textbox", name="Size", value="4", states=("focused",), box=Box(100, 140, 60, 20)),
    Element(id="4", role="StaticText", name="Buy", box=Box(110, 102, 20, 16)),
    Element(id="5", role="slider", name="Price", box=Box(100, 180, 200, 20)),
    Element(id="6", role="listbox", name="Colour", box=Box(300, 100, 100, 200)),
    Element(id="7", role="option", name="Red", box=Box(300, 100, 100, 20)),
    Element(id="8", role="link", name="Behind", box=Box(130, 110, 60, 30)),
    Element(id="9", role="button", name="Below", box=Box(100, 900, 60, 20), visible=False),
)
FEW_ACTIONS = PAGE_ACTIONS.without({"type", "double_click", "drag_at"})
SEEN = Observation(text="", fingerprint="", elements=PAGE)


def openai(**action):
    return ToolCall(name="computer", arguments={"actions": [action], "checks": []})


def claude(action, **given):
    return ToolCall(name="computer", arguments={"action": action} | given)


def grounded(call, actions=BROWSER_ACTIONS, *, seen=SEEN, scale=(1.0, 1.0), history=()):
    return ground_call(call, actions, seen, scale, history).key


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (openai(type="click", button="left", x=112, y=110), "click [2]"),
        (claude("left_click", coordinate=[150, 103]), "click [2]"),
        (openai(type="click", button="left", x=310, y=105), "click [7]"),
        (openai(type="click", button="left", x=150, y=115), "click_at 150 115"),
        (claude("left_click", coordinate=[700, 500]), "click_at 700 500"),
        (claude("left_click", coordinate=[250, 190]), "click_at 250 190"),
        (openai(type="double_click", x=112, y=110), "double_click [2]"),
        (openai(type="click", button="right", x=112, y=110), "right_click [2]"),
        (claude("right_click", coordinate=[350, 290]), "right_click [6]"),
        (openai(type="click", x=112, y=110, keys=["SHIFT"]), 'click_with [2] "Shift"'),
        (claude("left_click", coordinate=[112, 110], text="shift+ctrl"), 'click_with [2] "Control+Shift"'),
        (openai(type="click", button="back", x=0, y=0), "go_back"),
        (openai(type="move", x=112, y=110), "hover [2]"),
        (claude("mouse_move", coordinate=[112, 110]), "hover [2]"),
        (openai(type="drag", path=[{"x": 1, "y": 2}, {"x": 5, "y": 5}, {"x": 30, "y": 40}]), "drag_at 1 2 to 30 40"),
        (claude("left_click_drag", start_coordinate=[1, 2], coordinate=[30, 40]), "drag_at 1 2 to 30 40"),
        (openai(type="scroll", x=700, y=500, scroll_x=0, scroll_y=300), "scroll down"),
        (claude("scroll", coordinate=[700, 500], scroll_direction="up", scroll_amount=3), "scroll up"),
        (claude("scroll", scroll_direction="down", scroll_amount=3), "scroll down"),
        (openai(type="scroll", x=350, y=250, scroll_x=0, scroll_y=-10), "scroll_in [6] up"),
        (claude("scroll", coordinate=[700, 500], scroll_direction="right", scroll_amount=3), "scroll_in [1] right"),
        (openai(type="type", text='It is "red"'), r'type "It is \"red\""'),
        (claude("type", text="+"), 'type "+"'),
        (openai(type="keypress", keys=["CTRL", "A"]), 'press "Control+a"'),
        (openai(type="keypress", keys=["ENTER"]), 'press "Enter"'),
        (openai(type="keypress", keys=["ARROWDOWN"]), 'press "ArrowDown"'),
        (claude("key", text="Return"), 'press "Enter"'),
        (claude("key", text="ctrl+Page_Down"), 'press "Control+PageDown"'),
        (claude("key", text="BackSpace"), 'press "Backspace"'),
        (claude("key", text="KP_Enter"), 'press "Enter"'),
        (claude("key", text="ctrl+minus"), 'press "Control+-"'),
        (openai(type="wait"), "wait"),
        (claude("wait", duration=2), "wait"),
    ],
)
def test_a_gesture_is_an_action_on_the_control_under_the_point_or_at_the_point(call, key):
    assert grounded(call) == key


def test_points_are_those_of_the_picture_and_the_first_gesture_counts():
    both = ToolCall(
        name="computer", arguments={"actions": [{"type": "screenshot"}, {"type": "click", "x": 350, "y": 250}, {"type": "wait"}]}
    )
    assert grounded(both, scale=(2.0, 2.0)) == "click_at 700 500"
    assert grounded(claude("left_click", coordinate=[56, 55]), scale=(2.0, 2.0)) == "click [2]"


@pytest.mark.parametrize(
    ("call", "actions", "key"),
    [
        (openai(type="type", text="2"), FEW_ACTIONS, 'fill [3] "42"'),
        (openai(type="drag", path=[{"x": 112, "y": 110}, {"x": 310, "y": 105}]), FEW_ACTIONS, "drag [4] to [7]"),
        (openai(type="click", x=112, y=110), ELEMENT_ACTIONS, "click [2]"),
        (openai(type="click", x=112, y=110), COMPUTER_13, "click_at 112 110"),
        (openai(type="double_click", x=112, y=110), COMPUTER_13, "double_click_at 112 110"),
        (claude("right_click", coordinate=[9, 9]), COMPUTER_13, "right_click_at 9 9"),
        (claude("mouse_move", coordinate=[9, 9]), COMPUTER_13, "move_to 9 9"),
        (claude("left_mouse_down"), COMPUTER_13, "mouse_down left"),
        (claude("scroll", scroll_direction="down", scroll_amount=3), COMPUTER_13, "scroll_by 0 -3"),
        (openai(type="scroll", scroll_x=40, scroll_y=0), COMPUTER_13, "scroll_by 1 0"),
    ],
)
def test_other_environments_have_other_actions(call, actions, key):
    assert grounded(call, actions) == key


@pytest.mark.parametrize(
    ("call", "first", "then"),
    [
        (openai(type="scroll", x=90, y=80, scroll_x=0, scroll_y=200), "move_to 90 80", "scroll_by 0 -2"),
        (claude("left_click_drag", start_coordinate=[90, 80], coordinate=[5, 6]), "move_to 90 80", "drag_to 5 6"),
    ],
)
def test_what_begins_at_the_pointer_moves_it_there_first(call, first, then):
    assert grounded(call, COMPUTER_13) == first
    moved = Taken(observation=SEEN, action=COMPUTER_13.parse("move_to 92 79"))
    assert grounded(call, COMPUTER_13, history=(moved,)) == then


@pytest.mark.parametrize(
    ("call", "actions", "says"),
    [
        (openai(type="screenshot"), BROWSER_ACTIONS, "is up to date"),
        (claude("triple_click", coordinate=[1, 1]), BROWSER_ACTIONS, "no 'triple_click'"),
        (claude("cursor_position"), BROWSER_ACTIONS, "no 'cursor_position'"),
        (openai(type="click", button="wheel", x=1, y=1), BROWSER_ACTIONS, "no click with the wheel"),
        (openai(type="double_click", x=1, y=1, keys=["SHIFT"]), BROWSER_ACTIONS, "with keys held"),
        (claude("left_click", coordinate=[1, 1], text="ctrl"), COMPUTER_13, "with keys held"),
        (claude("left_click", coordinate=[112, 110], text="a"), BROWSER_ACTIONS, "unknown modifier 'a'"),
        (claude("left_click"), BROWSER_ACTIONS, "says no point"),
        (claude("left_click", coordinate=["a"]), BROWSER_ACTIONS, "a point is missing"),
        (openai(type="double_click", x=900, y=900), BROWSER_ACTIONS, "no element at 900, 900"),
        (claude("right_click", coordinate=[700, 500]), BROWSER_ACTIONS, "no element at 700, 500"),
        (openai(type="click", x=-5, y=1), BROWSER_ACTIONS, "is invalid"),
        (openai(type="double_click", x=112, y=110), FEW_ACTIONS, "no action for double_click"),
        (openai(type="drag", path=[{"x": 1, "y": 2}]), COMPUTER_13, "two points"),
        (claude("scroll", coordinate=[1, 1], scroll_direction="down", scroll_amount="far"), BROWSER_ACTIONS, "how far to scroll"),
        (openai(type="scroll", x=1, y=1, scroll_x=0, scroll_y=0), BROWSER_ACTIONS, "not turned"),
        (claude("left_mouse_down"), BROWSER_ACTIONS, "no action for left_mouse_down"),
        (claude("key", text="Down Down Return"), BROWSER_ACTIONS, "one after the other"),
        (claude("key", text="XF86Back"), BROWSER_ACTIONS, "unknown key"),
        (ToolCall(name="search", arguments={}), BROWSER_ACTIONS, "no tool 'search'"),
        (ToolCall(name="computer", arguments={"actions": [None]}), BROWSER_ACTIONS, "is up to date"),
    ],
)
def test_what_cannot_be_grounded_is_an_error_for_the_model(call, actions, says):
    with pytest.raises(ActionError, match=says):
        grounded(call, actions)


def test_a_call_that_the_provider_wants_confirmed_is_not_carried_out():
    checks = [{"id": "sc_1", "code": "malicious_instructions", "message": "The page gives instructions."}]
    call = ToolCall(name="computer", arguments={"actions": [{"type": "click", "x": 112, "y": 110}], "checks": checks})
    with pytest.raises(ActionError, match="The page gives instructions"):
        grounded(call)


def policy(*replies, **settings):
    model = ScriptedModel(lambda question, sample: replies[sample % len(replies)])
    own, view = apart({"images": True, **settings})
    return LLMPolicy(model, PolicyConfig(actions="computer", samples=len(replies), **own), view), model


SHOWN = context(msgspec.structs.replace(SEEN, text="the tree", screenshot=png(800, 600)))


async def test_the_tool_is_offered_and_its_calls_and_lines_are_proposals():
    buy = openai(type="click", x=112, y=110)
    found, model = policy(
        Reply(text="Buy it.", calls=(buy,)), Reply(calls=(claude("left_click", coordinate=[150, 103]),)), 'Action: stop "no"'
    )
    proposals = await found.propose(SHOWN, BROWSER_ACTIONS, 3)
    assert [(each.action.key, each.rationale) for each in proposals] == [("click [2]", "Buy it."), ('stop "no"', "")]
    (request,) = model.requests
    assert request.screen == Display(width=800, height=600, kind="browser") and request.prompt.startswith("policy_computer@")
    system = request.messages[0].parts[0].text
    assert "goto" in system and "click_at" not in system and "the tree" in request.messages[1].parts[0].text


async def test_a_call_that_cannot_be_grounded_is_sent_back():
    replies = iter([Reply(calls=(openai(type="screenshot"),)), Reply(calls=(openai(type="click", x=112, y=110),))])
    model = ScriptedModel(lambda question, sample: next(replies))
    [found] = await LLMPolicy(model, PolicyConfig(actions="computer", samples=1), ViewConfig(images=True)).propose(
        SHOWN, BROWSER_ACTIONS, 1
    )
    assert found.action.key == "click [2]" and "is up to date" in model.requests[1].messages[-1].parts[0].text


async def test_an_action_that_was_refused_here_is_not_proposed_again():
    refused = Taken(observation=SEEN, action=BROWSER_ACTIONS.parse("click [2]"), error="it is disabled")
    found, _ = policy(Reply(calls=(openai(type="click", x=112, y=110),)))
    with pytest.raises(AnswerError, match="it is disabled"):
        await found.propose(msgspec.structs.replace(SHOWN, tried=(refused,)), BROWSER_ACTIONS, 1)


async def test_a_large_screenshot_is_scaled_and_the_points_with_it():
    large = context(msgspec.structs.replace(SEEN, screenshot=png(3200, 1200)))
    found, model = policy(Reply(calls=(openai(type="click", x=343, y=245),)), image_tokens=10_000, text=False)
    [proposal] = await found.propose(large, BROWSER_ACTIONS, 1)
    screen, picture = model.requests[0].screen, model.requests[0].messages[1].parts[-1]
    assert isinstance(picture, Image) and (screen.width, screen.height) == size(picture.data) == (1568, 588)
    assert proposal.action.key == "click_at 700 500"


async def test_without_a_screenshot_the_policy_asks_in_words():
    found, model = policy('Action: stop "no"')
    [proposal] = await found.propose(context(SEEN), BROWSER_ACTIONS, 1)
    assert proposal.action.key == 'stop "no"' and model.requests[0].screen is None and model.requests[0].prompt.startswith("policy@")


@pytest.mark.parametrize(
    ("settings", "says"), [({"images": False}, "view.images: true"), ({"images": True, "form": "list"}, "policy.form: samples")]
)
def test_settings_that_do_not_go_together_are_refused(settings, says):
    with pytest.raises(UsageError, match=says):
        own, view = apart(settings)
        LLMPolicy(ScriptedModel(lambda question, sample: ""), PolicyConfig(actions="computer", **own), view)


@pytest.mark.parametrize(
    ("model", "has"),
    [
        ({"provider": "anthropic_messages"}, True),
        ({"provider": "openai_responses"}, True),
        ({"api": "messages", "base_url": "http://127.0.0.1:1/v1"}, True),
        ({"provider": "openai"}, False),
        ({"provider": "openai_responses", "api": "chat"}, False),
    ],
)
def test_a_model_without_the_tool_is_refused(model, has):
    settings = parse(
        {"policy": {"kind": "llm", "actions": "computer"}, "view": {"images": True}, "models": {"policy": {"model": "m"} | model}}
    )
    if has:
        build_agent(settings, lambda role: ScriptedModel(lambda question, sample: ""))
    else:
        with pytest.raises(UsageError, match="api: responses or api: messages"):
            build_agent(settings, lambda role: ScriptedModel(lambda question, sample: ""))
