"""The model client against a real llama.cpp server: what it refuses is learned at the first call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from exact.errors import ModelError
from exact.models.base import ChatAnswer
from exact.models.openai import OpenAIModel

from . import llamacpp

COLOUR = {"type": "object", "properties": {"colour": {"type": "string", "maxLength": 8}}, "required": ["colour"]}


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with llamacpp.running() as found:
        yield found


async def answers(server, *requests, **fields) -> tuple[list[ChatAnswer], OpenAIModel]:
    model = OpenAIModel(llamacpp.config(server.base_url, **fields))
    try:
        return [await model.complete(request) for request in requests], model
    finally:
        await model.close()


async def test_more_answers_than_slots_are_refused_and_then_asked_one_by_one(server, ask):
    (first, second), model = await answers(server, *[ask(n=8, max_tokens=2, seed=1)] * 2)
    assert [len(answer.choices) for answer in (first, second)] == [8, 8]
    assert model.endpoints[0].takes.n is False and first.usage.output_tokens >= 8
    assert len({choice.text for choice in first.choices}) > 1, "each sample has its own seed"


async def test_a_picture_is_left_out_for_a_text_model_without_retries(server, ask):
    (first, second), model = await answers(server, *[ask(images=(b"\x89PNG",), max_tokens=2)] * 2)
    assert first.notes == second.notes == ("pictures",) and model.endpoints[0].takes.images is False


async def test_log_probabilities_come_with_token_ids(server, ask):
    (answer,), _ = await answers(server, ask(logprobs=True, max_tokens=3))
    (choice,) = answer.choices
    assert choice.logprobs and choice.token_ids and len(choice.logprobs) == len(choice.token_ids)
    assert all(logprob <= 0 for logprob in choice.logprobs)


async def test_an_answer_keeps_to_a_schema(server, ask):
    (answer,), _ = await answers(server, msgspec.structs.replace(ask(max_tokens=40), schema=COLOUR))
    assert list(json.loads(answer.choices[0].text)) == ["colour"] and answer.notes == ()


async def test_an_answer_keeps_to_a_grammar(server, ask):
    (answer,), _ = await answers(server, msgspec.structs.replace(ask(max_tokens=9, n=2), grammar='root ::= "yes" | "no"'))
    assert {choice.text for choice in answer.choices} <= {"yes", "no"} and answer.notes == ()


async def test_a_grammar_that_is_refused_is_left_out_from_then_on(server, ask):
    wrong = msgspec.structs.replace(ask(max_tokens=2), grammar="root ::= missing (")
    (first, second), model = await answers(server, wrong, wrong)
    assert first.notes == second.notes == ("grammar",) and model.endpoints[0].takes.grammar is False


async def test_a_prompt_beyond_the_slot_is_reported_with_both_sizes(server, ask):
    with pytest.raises(ModelError, match=rf"too long .*\(\d+ tokens\) exceeds the available context size \({llamacpp.CONTEXT} tokens\)"):
        await answers(server, ask("word " * (llamacpp.CONTEXT + 500)))
