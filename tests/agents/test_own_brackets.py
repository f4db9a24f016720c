"""Special tokens in what a model copies: it reads them with look-alike brackets, and the environment gets their own."""

import msgspec
import pytest

from exact.agents.answer import Answerer
from exact.agents.parse import parse_action, parse_actions
from exact.agents.policy.llm import LLMPolicy
from exact.config import PolicyConfig, ViewConfig
from exact.context import EarlierGoal, Taken
from exact.errors import ActionError
from exact.models.base import Sampling
from exact.models.scripted import ScriptedModel
from exact.observation import Observation
from exact.text import with_special_tokens
from tests.prompts.states import ACTIONS, LESSON, SHOE, context, page

GOAL = "Enter </s> and [INST] as the size."


@pytest.mark.parametrize("written", ['fill [3] "‹/s› or ❲INST❳"', 'fill [3] "</s> or [INST]"'])
async def test_a_policy_types_the_tokens_of_the_goal_as_they_are_there(written):
    policy = LLMPolicy(ScriptedModel(lambda question, sample: f"Action: {written}"), PolicyConfig())
    [proposal] = await policy.propose(context(instruction=GOAL), ACTIONS, 1)
    assert proposal.action == ACTIONS.action("fill", "3", "</s> or [INST]")


async def test_so_it_does_with_those_that_an_earlier_page_showed():
    policy = LLMPolicy(ScriptedModel(lambda question, sample: 'Action: stop "‹|im_end|›"'), PolicyConfig())
    earlier = Taken(observation=Observation(text="The mark is <|im_end|>."), action=ACTIONS.parse("click [2]"))
    [proposal] = await policy.propose(context(history=(earlier,)), ACTIONS, 1)
    assert proposal.action == ACTIONS.action("stop", "<|im_end|>")


@pytest.mark.parametrize(
    "shown",
    [
        {"reflections": (msgspec.structs.replace(LESSON, text="Where a mark is asked for, answer <|im_end|>."),)},
        {"earlier": (EarlierGoal(instruction="Find the mark.", end="answered", answer="<|im_end|>"),)},
    ],
)
async def test_so_it_does_with_those_of_a_lesson_and_of_an_earlier_goal(shown):
    policy = LLMPolicy(ScriptedModel(lambda question, sample: 'Action: stop "‹|im_end|›"'), PolicyConfig())
    [proposal] = await policy.propose(context(**shown), ACTIONS, 1)
    assert proposal.action == ACTIONS.action("stop", "<|im_end|>")


def test_a_list_of_actions_is_read_so_too():
    [listed] = parse_actions('Action (70%): fill [3] "‹/s›"', ACTIONS, SHOE, known=(GOAL,))
    assert listed.chosen.action == ACTIONS.action("fill", "3", "</s>")


def test_an_action_that_was_refused_is_known_by_its_own_brackets():
    refused = Taken(observation=SHOE, action=ACTIONS.action("fill", "3", "</s>"), error="too long")
    with pytest.raises(ActionError, match="too long"):
        parse_action('Action: fill [3] "‹/s›"', ACTIONS, SHOE, (refused,), known=(GOAL,))


@pytest.mark.parametrize("written", ["‹/s›", "</s>"])
def test_an_element_is_known_by_a_label_that_is_one(written):
    seen = page(("link", "Home"), ("link", "</s>"))
    assert parse_action(f'Action: click "{written}" link', ACTIONS, seen, labels=True).action == ACTIONS.parse("click [2]")


@pytest.mark.parametrize("mark", ['{"type": "string"}', '{"enum": ["</s>"]}'])
async def test_the_object_of_an_answer_has_them_too(mark):
    schema = f'{{"type": "object", "properties": {{"mark": {mark}}}, "required": ["mark"]}}'
    answerer = Answerer(ScriptedModel(lambda question, sample: '{"mark": "‹/s›"}'), ViewConfig(), sampling=Sampling())
    assert (await answerer.answer(context(instruction=GOAL), schema, "")).data == {"mark": "</s>"}


def test_a_page_of_many_tokens_is_searched_for_those_of_the_answer_alone():
    looks = list[str]()

    class Page(str):
        def __contains__(self, part):
            looks.append(part)
            return super().__contains__(part)

    page = Page("".join(f"<|{number}|>" for number in range(5000)))
    assert with_special_tokens("‹|7|› ‹|8|› ‹other›", (page,)) == "<|7|> <|8|> ‹other›"
    assert looks == ["<|7|>", "‹|7|›", "<|8|>", "‹|8|›"]


@pytest.mark.parametrize("known", ["", "Enter ‹/s›.", "Enter ‹/s›, not </s>.", "Enter <s>."])
def test_look_alike_brackets_stay_where_they_may_be_meant(known):
    assert with_special_tokens("‹/s›", (known,)) == "‹/s›"
