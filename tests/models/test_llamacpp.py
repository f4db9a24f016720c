"""A real llama.cpp server: what it refuses is learned at the first call, doctor reports it as it is, and no attempt is lost to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.benchmarks import registry
from exact.cli.model_check import check_model
from exact.config import Config, PriceConfig, parse
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain, toy_task
from exact.errors import ModelError
from exact.models.base import ChatAnswer
from exact.models.openai import OpenAIModel
from exact.runs.journal import events as ev
from exact.runs.journal.file import read_journal
from exact.runs.journal.state import AttemptState
from exact.runs.journal.store import RunFolder
from exact.runs.runner import Runner, create
from exact.task import Task

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


async def test_the_tokens_of_all_choices_are_counted(server, ask):
    plain = msgspec.structs.replace(ask(max_tokens=20), grammar='root ::= "yes, it is so"')
    plain = msgspec.structs.replace(plain, sampling=msgspec.structs.replace(plain.sampling, temperature=0.0))
    two = msgspec.structs.replace(plain, sampling=msgspec.structs.replace(plain.sampling, n=2))
    (listed, one, both), _ = await answers(server, ask(n=2, logprobs=True, max_tokens=7), plain, two)
    assert listed.usage.output_tokens == sum(len(choice.logprobs or ()) for choice in listed.choices)
    assert both.usage.output_tokens > 1.5 * one.usage.output_tokens, "the likeliest way to cut a text is one"


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


async def test_doctor_tells_what_is_true_of_the_server(server):
    report = await check_model(llamacpp.config(server.base_url, model="any", retries=0))
    rows = dict(report.rows())
    assert report.model == "llamacpp/any (answers as smollm2-135m)" and rows["serves"] == "smollm2-135m"
    assert rows["context"] == f"{llamacpp.CONTEXT} tokens in each of {llamacpp.SLOTS} slots, trained for 8192 tokens"
    assert rows["n"] == f"not 8 answers in one request; it has {llamacpp.SLOTS} slots, and takes no more: each takes a request"
    assert rows["logprobs"] == "yes; token ids: yes; top_logprobs: 20"
    assert (rows["images"], rows["json_schema"], rows["grammar"]) == ("refused", "yes", "yes")


def settings(base_url: str, algorithm: str, grammar: str, **model: Any) -> Config:
    served = msgspec.to_builtins(llamacpp.config(base_url, **{"max_tokens": 12, "price": PriceConfig(input=0, output=0)} | model))
    search = {"algorithm": "mcts", "iterations": 2, "k": 2, "depth": 2} if algorithm == "mcts" else {"algorithm": algorithm}
    return parse(
        {
            "view": {"history": 1, "observation_tokens": 200},
            "policy": {"kind": "llm", "samples": 1, "grammar": grammar, "elements": "label"},
            "value": {"kind": "logprob"},
            "reflection": {"kind": "none"},
            "models": {"policy": served},
            "limits": {"actions": 1, "calls": 6},
            "search": search,
            "browser": {"screenshots": False},
        }
    )  # fmt: skip


def runner(folder: Path, config: Config, **hooks: Any) -> Runner:
    environments = ToyFactory(chain(2))
    run = RunFolder.open(folder) if (folder / "run.json").exists() else create(folder, (toy_task(environments.graph),), config)
    return Runner(folder=run, config=config, open_environments=lambda task: nullcontext(environments), **hooks)


@pytest.mark.parametrize("grammar", ["none", "action"])
@pytest.mark.parametrize("algorithm", ["react", "mcts"])
async def test_no_attempt_is_lost_to_the_server(server, tmp_path, algorithm, grammar):
    (line,) = await runner(tmp_path / "run", settings(server.base_url, algorithm, grammar)).run()
    assert line.status != "failed", line.reason
    assert line.calls > 0 and line.tokens > 0


async def test_with_a_grammar_a_small_model_acts_on_a_page(server, tmp_path, executable, monkeypatch):
    monkeypatch.setattr("exact.runs.runner.secrets.token_hex", lambda size: "ab" * size)  # the prompt's fences, and so the answer
    config = settings(server.base_url, "react", "action", max_tokens=32)
    task = registry.task("miniwob/click-test?seed=1")
    run = create(tmp_path / "run", (task,), config)
    opening = registry.suite(task.id).environments(config.browser)
    async with opening as environments:
        (line,) = await Runner(folder=run, config=config, open_environments=lambda task: nullcontext(environments)).run()
    assert line.status == "scored" and line.actions == 1, line.reason


async def test_an_attempt_goes_on_where_a_server_was_killed_and_started_again(tmp_path):
    def kill(task: Task, state: AttemptState, event: ev.AnyEvent) -> None:
        if isinstance(event, ev.Called) and server.process.poll() is None:
            server.kill()

    with llamacpp.running() as server:
        config = settings(server.base_url, "react", "action", max_tokens=8)
        config = msgspec.structs.replace(config, limits=msgspec.structs.replace(config.limits, actions=3))
        (line,) = await runner(tmp_path / "run", config, watch=kill).run()
    assert (line.status, line.missing, line.resumable) == ("failed", "model", True) and "cannot reach" in line.reason
    with llamacpp.running(port=server.port):
        (line,) = await runner(tmp_path / "run", config).run()
    events = [each for path in tmp_path.glob("run/tasks/*/journal.jsonl") for each in read_journal(path)]
    assert line.status != "failed", line.reason
    assert line.calls == sum(isinstance(each, ev.Called) for each in events) > 1, "the call before the kill is not repeated"
