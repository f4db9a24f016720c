"""A whole search with a server that fails in every way, a fifth of the time: nothing is invented, and every token is accounted for."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import msgspec
import pytest

from exact.cli.main import main
from exact.config import Config, parse
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import maze, toy_task
from exact.models import retry
from exact.models.base import Sampling, Usage
from exact.models.scripted import (
    Answers,
    AtMost,
    Cut,
    DroppedConnection,
    Fault,
    Malformed,
    Question,
    Reply,
    ScriptedServer,
    Slow,
    Status,
    Twice,
)
from exact.runs.journal import events as ev
from exact.runs.journal.costs import WAYS, CallCost, cost_by_group, total_cost
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner, create, reopen
from exact.search.base import Valued
from tests.runs.test_resume import journal
from tests.runs.test_resume_scripted import answers

WORDS = "scripted failure of the server"
FAULTS: tuple[Fault, ...] = (
    Status(429, WORDS, retry_after=0.01), Status(500, WORDS), DroppedConnection(), Malformed(f'{{"choices": "{WORDS}"'), Cut(), AtMost(0),
    Twice(),
)  # fmt: skip


def a_fifth(question: Question, times: int) -> Fault | None:
    """Fail a fifth of the requests, chosen by question, seed and repetition, so that the order does not matter."""
    draw = hashlib.sha256(f"{question.key}/{question.seed}/{times}".encode()).digest()
    return FAULTS[draw[1] % len(FAULTS)] if draw[0] < 256 / 5 else None


def slowly(question: Question, times: int) -> Fault | None:
    """Make the same faults; answers arrive in pieces."""
    return a_fifth(question, times) or Slow(3, 0.001)


def refusing(question: Question, sample: int) -> str | Reply:
    """Refuse one sample in seven. As on servers, choice i is the first choice of the same question with a seed higher by i."""
    sample += question.seed or 0
    draw = hashlib.sha256(f"{question.key}/{sample}/no".encode()).digest()
    if draw[0] < 256 / 7:
        return Reply(refusal="I will not.")
    return answers(msgspec.structs.replace(question, messages=question.messages[:2]), sample)


def for_good(question: Question, times: int) -> Fault | None:
    """Never answer some questions."""
    draw = hashlib.sha256(f"{question.key}/{question.seed}".encode()).digest()
    return Status(500, WORDS) if draw[0] < 256 / 2 and "Verdict" in question.messages[0][1] else a_fifth(question, times)


def config(url: str, workers: int, seed: int) -> Config:
    model = {"model": "m", "base_url": url, "price": {"input": 3, "output": 5}, "retries": 6}
    return parse(
        {
            "seed": seed,
            "search": {"iterations": 30, "k": 4, "depth": 8, "workers": workers},
            "policy": {"kind": "llm", "samples": 4},
            "value": {"kind": "llm", "samples": 2, "threshold": 1},
            "reflection": {"kind": "none"},
            "models": {"policy": model, "value": model | {"retries": 1 if seed < 0 else 6}},
            "limits": {"actions": 12, "money": 1},
        }
    )


async def run(
    folder: Path,
    faults: Callable[[Question, int], Fault | None],
    workers: int = 1,
    seed: int = 0,
    answers: Answers = answers,
) -> tuple[ResultLine, list[ev.AnyEvent], ScriptedServer]:
    environment = maze()
    async with ScriptedServer(answers, faults=faults) as server:
        create(folder, (toy_task(environment),), config(server.base_url, workers, seed))
        opened, settings = reopen(folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(retry, "FIRST_WAIT", 0.01)
            (line,) = await Runner(
                folder=opened, config=settings, open_environments=lambda task: nullcontext(ToyFactory(environment))
            ).run()
    return line, journal(folder), server


@pytest.mark.parametrize("workers", [1, 4])
async def test_a_fifth_of_faults_costs_calls_but_no_evaluation_and_no_token_of_the_account(tmp_path: Path, workers: int) -> None:
    faults = 0
    for seed in range(6):
        line, events, server = await run(tmp_path / str(seed), a_fifth, workers, seed)
        faults += sum(bool(received.fault) for received in server.log)
        assert line.status != "failed" and line.failures == 0 and line.evaluations > 3
        whole = [received for received in server.log if received.whole]
        assert line.tokens == sum(received.input_tokens + received.output_tokens for received in whole)
        spent = sum(3 * received.input_tokens + 5 * received.output_tokens for received in whole) / 1e6
        assert line.cost == pytest.approx(spent)
        lost = [received for received in server.log if received.fault in ("DroppedConnection", "Malformed", "Cut")]
        assert line.unaccounted == len(lost) == sum(len(event.lost) for event in events if isinstance(event, ev.Unaccounted))
    assert faults > 10


async def test_refusals_are_asked_about_again_or_counted_and_never_read(tmp_path: Path) -> None:
    line, events, server = await run(tmp_path / "run", slowly, seed=3, answers=refusing)
    refused = [event for event in events if isinstance(event, ev.Called) and event.attempt]
    assert refused and line.status != "failed"
    assert line.failures == sum(isinstance(event, ev.Failed) for event in events)
    assert line.tokens == sum(received.input_tokens + received.output_tokens for received in server.log if received.whole)
    judged = [event.result.evaluation for event in events if isinstance(event, ev.Told) and isinstance(event.result, Valued)]
    assert judged and not any("I will not" in evaluation.rationale for evaluation in judged)


async def test_a_state_without_an_evaluation_is_a_counted_failure_and_no_value(tmp_path: Path) -> None:
    line, events, server = await run(tmp_path / "run", for_good, seed=-1)
    assert line.failures == sum(isinstance(event, ev.Failed) for event in events) > 0
    judged = {event.node for event in events if isinstance(event, ev.Called) and event.role == "value"}
    failed = {event.node for event in events if isinstance(event, ev.Failed)}
    assert failed - judged and not any(WORDS in str(body["messages"]) for body in server.bodies)
    told = [event for event in events if isinstance(event, ev.Told)]
    assert not re.search(WORDS, " ".join(str(event.result) for event in told if "Failure" not in type(event.result).__name__))


async def test_costs_by_role_node_and_task_add_up_to_what_the_attempt_took(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line, events, _ = await run(tmp_path / "run", a_fifth, seed=1)
    for by in WAYS:
        groups = cost_by_group(events, by, task=line.task)
        whole = total_cost(groups.values())
        assert whole.input_tokens + whole.output_tokens == line.tokens and whole.cost == pytest.approx(line.cost)
        assert (whole.calls, whole.unaccounted, whole.unknown) == (line.calls, line.unaccounted, 0)
    assert set(cost_by_group(events, "role")) == {"policy", "value"} and set(cost_by_group(events, "task", task=line.task)) == {line.task}
    assert main(["show", str(tmp_path / "run"), "--cost", "--by", "node"]) == 0
    assert f"{line.cost:.4f}" in capsys.readouterr().out.splitlines()[-1]


def test_an_unknown_price_is_counted_as_unknown_and_not_as_nothing() -> None:
    usage = Usage(input_tokens=3, cached_tokens=2, output_tokens=1)
    called = ev.Called(
        key="k", role="value", node=1, attempt=0, prompt="p", model="m", sampling=Sampling(), request="", answer="", usage=usage
    )
    assert cost_by_group([called]) == {"value": CallCost(calls=1, input_tokens=3, cached_tokens=2, output_tokens=1, unknown=1)}


async def test_no_key_gets_into_a_file_of_a_run_for_any_answer_of_the_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "plain-0123456789-of-nobody"
    monkeypatch.setenv("OPENAI_API_KEY", key)

    def echoing(question: Question, times: int) -> Fault | None:
        match a_fifth(question, times):
            case Status(code=code):
                return Status(code, f"Bearer {key} failed", retry_after=0.01)
            case Malformed():
                return Malformed(f"key {key}")
            case fault:
                return fault or (Status(400, f"no, {key}") if times == 0 and (question.seed or 0) % 7 == 0 else None)

    _, _, server = await run(tmp_path / "run", echoing, answers=lambda question, sample: f"{key}\n{answers(question, sample)}")
    assert all(headers["authorization"] == f"Bearer {key}" for headers in server.headers)
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) > 10 and not [path for path in files if key.encode() in path.read_bytes()]


async def test_the_tokens_of_a_call_that_failed_in_the_end_are_counted(tmp_path: Path) -> None:
    def faults(question: Question, times: int) -> Fault | None:
        if question.n > 1:
            return AtMost(1)
        return Status(404, WORDS) if (question.seed or 0) % 2 and "Verdict" in question.messages[0][1] else None

    line, events, server = await run(tmp_path / "run", faults)
    lost = [event for event in events if isinstance(event, ev.Unaccounted)]
    assert any(event.usage.input_tokens for event in lost)
    assert line.tokens == server.input_tokens + server.output_tokens
