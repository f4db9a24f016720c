"""The prompt that a policy uses for each format of observations and actions, and the actions that it accepts."""

import msgspec
import pytest

from exact.action import ActionSpace, Parameter, Verb
from exact.agents.agent import build_agent
from exact.agents.policy.llm import LLMPolicy
from exact.agents.roles import allows_several, roles
from exact.config import PolicyConfig, ViewConfig, parse
from exact.context import Context
from exact.environments.browser.act.grammar import BROWSER_ACTIONS
from exact.environments.desktop.grammar import python
from exact.errors import ActionError, AnswerError, UsageError
from exact.models.base import Image
from exact.models.open import model_for
from exact.models.scripted import ScriptedModel

from ..prompts.states import ACTIONS, SHOE, apart, context
from ..views.test_view import png

DESKTOP = ActionSpace([python("Runs it; pyautogui is imported."), Verb(name="wait"), Verb(name="stop", form=(Parameter.TEXT,), final=True)])
CLICK = "Action: python\n```python\npyautogui.click(1, 2)\n```"


def seen(screenshot: bytes | None = None) -> Context:
    return context(msgspec.structs.replace(SHOE, screenshot=screenshot))


async def asked(answer: str, actions: ActionSpace = BROWSER_ACTIONS, **settings: object):
    model = ScriptedModel(lambda question, sample: answer)
    own, view = apart(settings)
    found = await LLMPolicy(model, PolicyConfig(**own), view).propose(seen(png(1280, 720)), actions, 3)  # type: ignore[arg-type]
    return [proposal.action.key for proposal in found], model.requests[0]


@pytest.mark.parametrize(
    ("settings", "actions", "answer", "prompt"),
    [
        ({}, ACTIONS, "Action: click [2]", "policy@"),
        ({"images": True}, ACTIONS, "Action: click [2]", "policy@"),
        ({"images": True, "marks": True}, ACTIONS, "Action: click [2]", "policy_marks@"),
        ({"images": True, "text": False}, BROWSER_ACTIONS, "Action: click_at 3 4", "policy_screenshot@"),
        ({"images": True, "text": False, "marks": True}, BROWSER_ACTIONS, "Action: click [2]", "policy_marks@"),
        ({}, DESKTOP, CLICK, "policy_code@"),
        ({"form": "list", "images": True, "marks": True}, ACTIONS, "Action (9%): click [2]", "policy_marks_list@"),
        ({"form": "list", "images": True, "text": False}, BROWSER_ACTIONS, "Action (9%): click_at 3 4", "policy_screenshot_list@"),
        ({"form": "list"}, DESKTOP, CLICK.replace("Action", "Action (60%)"), "policy_code_list@"),
    ],
)
async def test_the_prompt_is_that_of_the_format(settings, actions, answer, prompt):
    _, request = await asked(answer, actions, **settings)
    assert request.prompt.startswith(prompt)
    assert sum(isinstance(part, Image) for part in request.messages[1].parts) == int(settings.get("images", False))


async def test_a_screenshot_alone_shows_no_text_and_offers_no_id():
    keys, request = await asked("Action: click_at 400 300", images=True, text=False, image_tokens=300)
    system, user = (message.parts[0].text for message in request.messages)
    assert keys == ["click_at 400 300"] and "click_at" in system and "click [id]" not in system
    assert '[2] button "Buy"' not in user and "(The state is in the picture.)" in user
    assert "The screen is 1280 x 720 pixels" in user and "The picture is that screen scaled to" in user
    with pytest.raises(AnswerError, match="unknown action 'click'"):
        await asked("Action: click [2]", images=True, text=False)


def test_a_policy_that_would_show_nothing_is_refused():
    with pytest.raises(UsageError, match="show at least one"):
        LLMPolicy(ScriptedModel(lambda question, sample: ""), PolicyConfig(), ViewConfig(text=False))


async def test_without_a_screenshot_nothing_is_asked_about_a_picture():
    model = ScriptedModel(lambda question, sample: "Action: click_at 1 1")
    with pytest.raises(UsageError, match=r"browser\.screenshots"):
        await LLMPolicy(model, PolicyConfig(), ViewConfig(images=True, text=False)).propose(seen(), BROWSER_ACTIONS, 1)
    assert not model.requests


async def test_code_is_the_block_below_its_verb_and_equal_code_is_one_action():
    same = [CLICK, CLICK.replace("pyautogui.click(1, 2)", "# press it\npyautogui.click( 1,2 )"), "Action: wait"]
    model = ScriptedModel(lambda question, sample: same[sample])
    found = await LLMPolicy(model, PolicyConfig(samples=3)).propose(seen(), DESKTOP, 3)
    assert [(p.action.args, p.prior) for p in found] == [(("pyautogui.click(1, 2)",), pytest.approx(2 / 3)), ((), pytest.approx(1 / 3))]


async def test_a_list_of_code_keeps_each_block_with_its_action():
    first = "Think.\nFirst.\nAction (60%): python\n```python\na = 1\n# Action (5%): wait\nb(a)\n```\n"
    two = first + "Else.\nAction (30%): python\n```\nc()\n```\n"
    found = await LLMPolicy(ScriptedModel(lambda q, s: two), PolicyConfig(form="list")).propose(seen(), DESKTOP, 3)
    assert [(p.action.args[0], p.rationale.split()[-1]) for p in found] == [("a = 1\nb(a)", "First."), ("c()", "Else.")]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("Action: python", "no block below"),
        (CLICK.replace("(1, 2)", "(1, "), "does not parse"),
        ("Action: python\n```\n# only this\n```", "no statement"),
    ],
)
async def test_unusable_code_is_reported(answer, says):
    with pytest.raises(AnswerError, match=says):
        await asked(answer, DESKTOP)


def test_code_is_only_read_never_run():
    with pytest.raises(ActionError):
        DESKTOP.action("python", "raise SystemExit(")
    assert DESKTOP.parse(DESKTOP.action("python", "raise SystemExit").key).args == ("raise SystemExit",)


@pytest.mark.parametrize(
    ("provider", "samples", "prompt"),
    [
        ("openai", 8, "policy@"),
        ("anthropic", 8, "policy_list@"),
        ("ollama", 8, "policy_list@"),
        ("anthropic", 1, "policy@"),
        ("gemini", 8, "policy@"),
    ],
)
async def test_a_list_is_the_default_where_the_provider_has_no_n(provider, samples, prompt):
    model = ScriptedModel(lambda question, sample: "Action (50%): click [2]" if "list" in prompt else "Action: click [2]")
    settings = parse({"policy": {"kind": "llm", "samples": samples}, "models": {"policy": {"model": "m", "provider": provider}}})
    await build_agent(settings, lambda role: model).policy.propose(context(), ACTIONS, 3)
    assert model.requests[0].prompt.startswith(prompt)


def test_a_users_provider_says_whether_it_gives_several(tmp_path):
    (tmp_path / "mine.yaml").write_text("mine: {base_url: 'http://127.0.0.1:1/v1', capabilities: {n: false}}")
    models = {"policy": {"model": "m", "provider": "mine"}, "providers": str(tmp_path / "mine.yaml")}
    assert not allows_several(parse({"models": models}), "policy")


async def test_each_arm_can_have_a_model_of_its_own():
    arms = [{"kind": "llm", "role": "policy.other", "samples": 1}]
    models = {"policy": {"model": "a"}, "parts": {"policy.other": {"model": "b"}}}
    settings = parse(
        {
            "policy": {"kind": "llm", "samples": 1},
            "arms": arms,
            "value": {"kind": "lexical"},
            "models": models,
            "search": {"algorithm": "abmcts"},
        }
    )
    assert {"policy", "policy.other"} <= set(roles(settings)) and model_for(settings.models, "policy.other").model == "b"
    opened = {role: ScriptedModel(lambda q, s: "Action: click [2]") for role in ("policy", "policy.other", "reflection")}
    agent = build_agent(settings, opened.__getitem__)
    await agent.proposer(1).propose(context(), ACTIONS, 1)
    assert [request.role for request in opened["policy.other"].requests] == ["policy.other"] and not opened["policy"].requests
