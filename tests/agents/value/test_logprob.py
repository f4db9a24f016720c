"""A judge of one token: probabilities of yes and no, and answers in words where a server lists none."""

import json
import math

import msgspec
import pytest

from exact.agents.value.debate import DebateValue, Speaker
from exact.agents.value.logprob import LogprobValue, yes_probability
from exact.config import ModelConfig, ValueConfig
from exact.errors import AnswerError
from exact.models.base import Sampling, TokenChance
from exact.models.openai import OpenAIModel
from exact.models.scripted import Reply, ScriptedModel, ScriptedServer, Status
from exact.models.wire import answer
from tests.prompts.states import context


def chances(**probabilities: float) -> tuple[TokenChance, ...]:
    return tuple(TokenChance(text, math.log(each)) for text, each in probabilities.items())


def certain(yes: float, *, text: str = "Yes") -> Reply:
    """A server's answer of one token, which is cut off there."""
    return Reply(text=text, finish="length", top_logprobs=(chances(**{"Yes": yes * 0.9, "No": (1 - yes) * 0.9, "It": 0.1}),))


def value(model, **settings) -> LogprobValue:
    return LogprobValue(model, ValueConfig(kind="logprob", **settings), sampling=Sampling(temperature=0.3, max_tokens=300))


def test_all_spellings_of_yes_and_no_count():
    yes, no = {"Yes": 0.4, " yes": 0.1, "YES.": 0.05, "ĠYes": 0.05}, {"No": 0.1, "▁no": 0.05, '"No': 0.05}
    listed = chances(**yes, **no, None_=0.1, Yesterday=0.1)
    assert yes_probability(listed) == pytest.approx(0.6 / 0.8)


def test_one_word_alone_is_certain_however_unlikely_it_is():
    assert yes_probability([TokenChance("yes", -2000.0)]) == 1.0 and yes_probability([TokenChance("no", -2000.0)]) == 0.0


@pytest.mark.parametrize("listed", [(), chances(The=0.9, Maybe=0.1), chances(**{"<think>": 0.9, "1": 0.1})])
def test_a_list_with_neither_is_no_value(listed):
    with pytest.raises(AnswerError, match="neither yes nor no"):
        yes_probability(listed)


async def test_the_value_is_the_probability_of_yes_from_one_token_and_one_call():
    model = ScriptedModel(lambda question, sample: certain(0.73))
    found = await value(model, samples=4, threshold=0.0, most=8).evaluate(context(node=5))
    assert found.value == pytest.approx(0.73) and found.samples == (found.value,) and "0.73" in found.rationale
    [request] = model.requests
    sampling = request.sampling
    assert (sampling.n, sampling.max_tokens, sampling.logprobs, sampling.top_logprobs) == (1, 1, True, 20)
    assert (sampling.temperature, sampling.top_p, request.role, request.node) == (1.0, 1.0, "value", 5)
    assert request.prompt.startswith("value_logprob@") and request.messages[-1].parts[0].text.endswith("Answer yes or no.")


async def test_a_judge_that_says_something_else_is_told_and_then_an_answer_error():
    model = ScriptedModel(lambda question, sample: Reply(text="The", finish="length", top_logprobs=(chances(The=0.9),)))
    with pytest.raises(AnswerError, match=r"asked 3 times: .*but with 'The'"):
        await value(model).evaluate(context())
    assert "the word yes or the word no" in model.requests[1].messages[-1].parts[0].text


async def test_answers_are_counted_where_no_likeliest_tokens_are_listed():
    words = ("Yes.", "no, it is not", "**Yes**", Reply(text="Yes, because all that the", finish="length"))
    model = ScriptedModel(lambda question, sample: "Yes" if question.n == 1 else words[sample])
    found = await value(model, samples=4, threshold=0.5).evaluate(context())
    assert found.value == 0.75 and found.samples == (1.0, 0.0, 1.0, 1.0) and "counted, because" in found.rationale
    asked = model.requests[-1].sampling
    assert len(model.requests) == 2 and (asked.n, asked.temperature, asked.logprobs, asked.top_logprobs) == (4, 0.3, False, msgspec.UNSET)


async def test_counted_answers_that_differ_trigger_more():
    model = ScriptedModel(lambda question, sample: "Yes" if sample % 2 else "No")
    await value(model, samples=2, threshold=0.1, most=6).evaluate(context())
    assert [request.sampling.n for request in model.requests] == [1, 2, 2, 2]
    assert len({(request.draw, request.sampling.n) for request in model.requests}) == 4


async def test_counted_answers_that_are_neither_are_an_answer_error():
    with pytest.raises(AnswerError, match="neither yes nor no"):
        await value(ScriptedModel(lambda question, sample: "Perhaps")).evaluate(context())


@pytest.mark.parametrize("message", ["logprobs is not supported with this model", "Token probabilities cannot be requested", "Bad Request"])
async def test_a_server_that_refuses_probabilities_is_counted_from_then_on(message):
    def faults(question, times):
        return Status(400, message) if "logprobs" in server.bodies[-1] else None

    async with ScriptedServer(lambda question, sample: "Yes" if sample else "No", faults=faults) as server:
        model = OpenAIModel(ModelConfig(model="m", base_url=server.base_url, retries=0))
        judge = value(model, samples=2, threshold=0.5)
        found = [await judge.evaluate(context(node=node)) for node in range(2)]
        await model.close()
    assert [each.value for each in found] == [0.5, 0.5] and all("counted, because" in each.rationale for each in found)
    assert ["logprobs" in body for body in server.bodies] == [True] + [False] * 4


LLAMA = {
    "choices": [{"finish_reason": "length", "index": 0, "message": {"role": "assistant", "content": "Yes"}, "logprobs": {"content": [
        {"id": 10, "token": "Yes", "bytes": [89, 101, 115], "logprob": -0.22, "top_logprobs": [
            {"id": 10, "token": "Yes", "bytes": [89, 101, 115], "logprob": -0.22314355},
            {"id": 11, "token": " No", "bytes": [32, 78, 111], "logprob": -1.6094379},
            {"id": 12, "token": "\ufffd", "bytes": [226, 150], "logprob": -9.1},
        ]}]}}],
    "usage": {"prompt_tokens": 700, "completion_tokens": 1},
}  # fmt: skip
OPENAI = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "No", "refusal": None}, "finish_reason": "length", "logprobs": {
        "refusal": None, "content": [{"token": "No", "logprob": -0.69, "bytes": [78, 111], "top_logprobs": [
            {"token": "No", "logprob": -0.69314718, "bytes": [78, 111]},
            {"token": "Yes", "logprob": -0.69314718, "bytes": [89, 101, 115]}]}]}}],
}  # fmt: skip
VLLM = {
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "length", "token_ids": None, "logprobs": {
        "content": [{"token": "token_id:9642", "logprob": -0.1, "bytes": [89, 101, 115], "top_logprobs": [
            {"token": "token_id:9642", "logprob": -0.10536051, "bytes": [89, 101, 115]},
            {"token": "token_id:2822", "logprob": -2.3025851, "bytes": [78, 111]}]}]}}],
}  # fmt: skip


@pytest.mark.parametrize(("shape", "probability"), [(LLAMA, 0.8), (OPENAI, 0.5), (VLLM, 0.9)])
def test_recorded_shapes_give_the_probability(shape, probability):
    [choice] = answer(json.dumps(shape)).choices
    assert choice.top_logprobs is not None and yes_probability(choice.top_logprobs[0]) == pytest.approx(probability, abs=1e-6)


async def test_a_debate_with_verdicts_of_one_token_reads_both_orders():
    def judge(question, sample):
        text = question.messages[-1][1]
        if "The debate:" not in text:
            return "My case."
        return certain(0.9 if text.index("⟦the case for") < text.index("⟦the case against") else 0.5)

    seat = Speaker(ScriptedModel(judge), Sampling())
    found = await DebateValue(seat, seat, [seat], ValueConfig(kind="debate", verdict="logprob", threshold=0.0)).evaluate(context())
    assert found.value == pytest.approx(0.7) and found.order_effect == pytest.approx(0.4)
    assert [request.role for request in seat.model.requests] == ["value.supporter", "value.opposer", "value.judge", "value.judge"]
    assert len(found.arguments) == 2 and len(found.judges) == 2


async def test_a_debate_counts_where_no_likeliest_tokens_are_listed():
    def judge(question, sample):
        return "My case." if "Write your case." in question.text else "no" if sample else "yes"

    seat = Speaker(ScriptedModel(judge), Sampling())
    config = ValueConfig(kind="debate", verdict="logprob", samples=2, threshold=0.4)
    found = await DebateValue(seat, seat, [seat], config).evaluate(context())
    assert found.value == 0.5 and found.samples == (1.0, 0.0, 1.0, 0.0)
