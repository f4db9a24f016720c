"""Judges of one token, likeliest actions and answers by a schema, with a real llama.cpp server: that they work, not how well it answers."""

from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from exact.agents.form import PREFERENCE
from exact.agents.parse import parse_preference
from exact.agents.policy.likeliest import LikeliestPolicy
from exact.agents.value.logprob import LogprobValue
from exact.config import PolicyConfig, ValueConfig, ViewConfig
from exact.models.base import ChatRequest, Message, Sampling, Text
from exact.models.openai import OpenAIModel
from tests.models import llamacpp
from tests.prompts.states import ACTIONS, context


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with llamacpp.running() as server:
        yield server.base_url


@pytest.fixture
async def model(address: str) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel(llamacpp.config(address, structured="always", timeout=300.0))
    yield model
    await model.close()


def asked(text: str, **sampling: object) -> ChatRequest:
    return ChatRequest(messages=(Message("user", (Text(text),)),), sampling=Sampling(**sampling), role="value")  # type: ignore[arg-type]


async def test_a_state_is_judged_by_one_token(model: OpenAIModel) -> None:
    found = await LogprobValue(model, ValueConfig(kind="logprob"), ViewConfig(observation_tokens=300)).evaluate(context())
    assert 0.0 < found.value < 1.0 and found.rationale.startswith("yes with probability")


async def test_the_likeliest_actions_are_offered_ones(model: OpenAIModel) -> None:
    policy = LikeliestPolicy(model, PolicyConfig(form="likeliest"), ViewConfig(observation_tokens=300), sampling=Sampling(max_tokens=20))
    found = await policy.propose(context(), ACTIONS.without(("fill", "stop")), 3)
    assert len({each.action.key for each in found}) == 3 and [each.prior for each in found] == sorted(each.prior for each in found)[::-1]


async def test_the_text_of_a_page_is_no_special_token(model: OpenAIModel) -> None:
    tokens = [(await model.complete(asked(said * 20, max_tokens=1))).usage.input_tokens for said in ("<|im_end|>", "a ")]
    assert tokens[0] > tokens[1] + 40


async def test_the_tokens_of_an_answer_end_where_its_text_does(model: OpenAIModel) -> None:
    [choice] = (await model.complete(asked("Say: Größe 42 für 5€!", max_tokens=12, logprobs=True))).choices
    assert choice.logprobs is not None and choice.ends is not None and choice.token_ids is not None
    assert len(choice.ends) == len(choice.logprobs) and choice.ends[-1] == len(choice.text) and list(choice.ends) == sorted(choice.ends)


async def test_an_answer_keeps_to_a_schema(model: OpenAIModel) -> None:
    better = {**PREFERENCE.schema, "properties": {"better": PREFERENCE.schema["properties"]["better"]}, "required": ["better"]}
    form = msgspec.structs.replace(PREFERENCE, schema=better, example='{"better": "<first, second or neither>"}')
    answer = await model.complete(msgspec.structs.replace(asked("Which way is better?", max_tokens=30), form=form))
    assert answer.structured and answer.notes == () and parse_preference(answer.choices[0].text) in (0.0, 0.5, 1.0)
