import msgspec
import pytest

from exact.agents.request import state_request
from exact.config import ViewConfig
from exact.models import tokens
from exact.models.base import Image, Sampling, Text
from exact.models.tokens import size
from exact.observation import Box, Element
from tests.prompts.states import ACTIONS, SHOE, context, page
from tests.views.test_view import png

POLICY = {"role": "policy", "samples": 2, "actions": ACTIONS.describe(), "style": "plain", "examples": (), "thinks": True}


def test_text_over_the_limit_is_left_out_and_noted_with_the_request():
    long = page(*((("link", "heading")[i % 2], f"Shoe number {i}") for i in range(600)))
    request = state_request("policy", context(long), ViewConfig(observation_tokens=300), Sampling(), **POLICY)
    words = request.messages[1].parts[0].text
    assert "Shoe number 599" not in words and "left out:" in words
    assert request.left_out and "of 600 lines" in request.left_out[0]


@pytest.mark.parametrize(("prompt", "inputs"), [("policy", POLICY), ("value", {"role": "value", "samples": 1})])
def test_a_screenshot_is_marked_and_scaled(prompt, inputs):
    seen = msgspec.structs.replace(SHOE, screenshot=png(1280, 720))
    request = state_request(prompt, context(seen), ViewConfig(images=True, marks=True, image_tokens=300), Sampling(), **inputs)
    (picture,) = (part for part in request.messages[1].parts if isinstance(part, Image))
    assert size(picture.data) < (1280, 720) and request.left_out[0].startswith("a picture of 1280 x 720")


@pytest.mark.parametrize("model", ["openai/gpt-4o", "anthropic/claude-sonnet-5-5", "vllm/Qwen/qwen3-vl"])
def test_a_picture_is_priced_as_its_model_does(model):
    seen = msgspec.structs.replace(SHOE, screenshot=png(1280, 2048))
    request = state_request(
        "value", context(seen), ViewConfig(images=True, image_tokens=900), Sampling(), role="value", samples=1, model=model
    )
    (picture,) = (part for part in request.messages[1].parts if isinstance(part, Image))
    assert 600 < tokens.picture(*size(picture.data), model) <= 900 and bool(request.left_out)


def test_text_cut_by_a_prompts_own_limits_is_noted_too():
    request = state_request("value", context(instruction="x" * 30_000), ViewConfig(), Sampling(), role="value", samples=1)
    assert request.left_out == ("6000 characters of the goal",)


def test_text_within_the_limit_is_complete_and_nothing_is_noted():
    request = state_request("policy", context(), ViewConfig(), Sampling(), **POLICY)
    assert request.left_out == () and 'button "Buy"' in request.messages[1].parts[0].text


def test_the_configuration_chooses_the_parts_of_a_state_that_are_shown():
    elements = (
        Element(id="1", role="button", name="Here", box=Box(20, 30, 60, 20)),
        Element(id="2", role="link", name="Below", visible=False),
    )
    seen = msgspec.structs.replace(SHOE, text='[1] button "Here"\n[2] link "Below"', elements=elements, screenshot=png(200, 100))
    state = context(msgspec.structs.replace(seen, html='<p exact="1">Markup</p>'), history=context().history * 3)

    def shown(**settings):
        request = state_request("policy", state, ViewConfig(**settings), Sampling(), **POLICY)
        parts = request.messages[1].parts
        return "".join(part.text for part in parts if isinstance(part, Text)), sum(isinstance(part, Image) for part in parts)

    assert "Below" in shown()[0] and "Below" not in shown(tree="view")[0]
    assert "Markup" not in shown()[0] and "Markup" in shown(html=True)[0]
    assert shown()[0].count('"Blue shoe"') > shown(history=1)[0].count('"Blue shoe"')
    assert (shown()[1], shown(images=True)[1], shown(images=True, marks=True)[1]) == (0, 1, 1)
    assert "Here" not in shown(images=True, marks=True, text=False)[0]


def test_a_judge_is_shown_the_state_before_as_whole_as_the_state():
    rows = [("link", f"Shoe number {i}") for i in range(400)]
    before, now = page(*rows), page(*rows, ("heading", "Sold"))
    seen = context(now, history=(msgspec.structs.replace(context().history[0], observation=before),))
    default, changed = (
        state_request("value", seen, ViewConfig(), Sampling(), role="value", samples=1, changes=each).messages[1].parts[0].text
        for each in (False, True)
    )
    assert '+[401] heading "Sold"' in changed and changed.count("Shoe number 399") == 1
    assert len(changed) < 1.1 * len(default) and changed.index("Shoe number 399") < changed.index("Then this step:")


def test_a_state_that_is_only_in_its_picture_is_not_shown_by_changes():
    seen = context(msgspec.structs.replace(SHOE, screenshot=png(20, 20)))
    view = ViewConfig(text=False, images=True)
    one, other = (state_request("value", seen, view, Sampling(), role="value", samples=1, changes=each) for each in (False, True))
    assert one == other
