"""The published evaluators, in their own interpreter, on made-up answers and traffic."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.benchmarks.webarena_verified import suite as module
from exact.benchmarks.webarena_verified.suite import EvaluatorResult, RecordedAttempt, evaluate, save, score
from exact.environments.browser.network.har import HarExchange
from exact.errors import EnvironmentFailure, EvaluatorError, InfrastructureError
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import Secret
from tests.benchmarks.webarena_verified.made_up import HTML, SITES, answer, attempt, data, exchanges, python

RETRIEVE, MUTATE, NAVIGATE, FAULTY = 0, 606, 378, 699
UNREACHABLE = {
    319: "it expects no `retrieved_data`, and misses the key",
    429: "it wants two pages to be the last one",
    **dict.fromkeys((567, 568, 569, 570), "it wants several requests, and looks at the last one alone"),
}
"""Tasks that no traffic fulfils in version 1.2.3, with the reason."""


@pytest.fixture(scope="module")
def tasks() -> list[dict[str, Any]]:
    return data()


def scored(*attempts: RecordedAttempt) -> list[EvaluatorResult]:
    """Return the results of several attempts, by one process."""
    lines = b"\n".join(map(msgspec.json.encode, attempts))
    done = subprocess.run([python(), "-W", "ignore", "-I", str(module._PROGRAM)], input=lines, capture_output=True, check=True)
    return [msgspec.json.decode(line, type=EvaluatorResult) for line in done.stdout.splitlines()]


def right(task: dict[str, Any], **changes: Any) -> RecordedAttempt:
    """Return an attempt that fulfils a task, with some keys of its answer changed."""
    given, made = answer(task), exchanges(task)
    assert given is not None and made is not None
    return attempt(task, json.dumps({**json.loads(given), **changes}), made)


def changed(done: RecordedAttempt, **fields: Any) -> RecordedAttempt:
    return msgspec.structs.replace(done, **fields)


def attempts_of(tasks: list[dict[str, Any]]) -> dict[str, RecordedAttempt]:
    """Return attempts by what they show: those with `right` in the name fulfil their task."""
    retrieve, mutate, navigate = right(tasks[RETRIEVE]), right(tasks[MUTATE]), right(tasks[NAVIGATE])
    absent = right(next(task for task in tasks if _wants_not_found(task)))
    about = HarExchange(method="GET", url=f"{SITES['map']}/about", started=2.0, headers=HTML, status=200)
    return {
        "right answer": retrieve,
        "wrong data": right(tasks[RETRIEVE], retrieved_data=["Sprite Yoga Strap 6 foot"]),
        "wrong status": right(tasks[RETRIEVE], status="NOT_FOUND_ERROR"),
        "wrong type": right(tasks[RETRIEVE], task_type="MUTATE"),
        "right request": mutate,
        "no request": changed(mutate, entries=mutate.entries[:-1]),
        "request with another title": changed(mutate, entries=_with_body(mutate, "submission%5Btitle%5D=another")),
        "request without a right answer": changed(mutate, answer=None),
        "right page": navigate,
        "page that was left": changed(navigate, entries=[*navigate.entries, *attempt(tasks[NAVIGATE], None, [about]).entries]),
        "right status of what is not there": absent,
        "N/A": changed(absent, answer="N/A"),
        "N/A as data": right(tasks[RETRIEVE], retrieved_data=["N/A"]),
        **{f"garbled {text}": changed(retrieve, answer=text) for text in GARBLED},
    }


GARBLED = (None, "", "no JSON", "[]", "NaN", '{"status": 3}', '{"task_type": null}', '{"task_type": ["RETRIEVE"]}')


def test_made_up_attempts_are_scored_by_answer_and_traffic(tasks: list[dict[str, Any]]) -> None:
    made = attempts_of(tasks)
    scores = {name: score(one, result) for (name, one), result in zip(made.items(), scored(*made.values()), strict=True)}
    assert {name for name, one in scores.items() if one.success} == {name for name in made if name.startswith("right")}
    assert all(one.value == float(one.success) for one in scores.values())
    assert "No matching network event" in scores["no request"].reason
    assert scores['garbled {"status": 3}'].reason.startswith("the evaluators cannot read the answer")
    assert all(one.reason for one in scores.values() if not one.success)
    assert [name for name, one in scores.items() if one.unanswered] == ["request without a right answer", "garbled None"]


async def test_the_evaluators_run_in_their_own_interpreter(tasks: list[dict[str, Any]]) -> None:
    assert (await evaluate(python(), right(tasks[RETRIEVE]))).success


def test_evaluators_that_fail_give_no_score(tasks: list[dict[str, Any]]) -> None:
    faulty, empty = right(tasks[FAULTY]), changed(right(tasks[RETRIEVE]), entries=[])
    first, second = scored(faulty, empty)
    with pytest.raises(InfrastructureError, match=r"webarena-verified failed at task 699: .*Alternatives require 2\+ items"):
        score(faulty, first)
    with pytest.raises(InfrastructureError, match=r"failed at task 0: .*Trace content list is empty"):
        score(empty, second)


NOTHING = RecordedAttempt(task_id=0, answer=None, entries=[], environments={})


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo broken package >&2; exit 3", r"gave no result \(status 3\): broken package: run shells/setup.sh"),
        ("echo no JSON", r"gave no result \(status 0\): they said nothing"),
    ],
)
async def test_a_process_without_a_result_gives_no_score(script: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=why):
        await evaluate(_program(tmp_path, script), NOTHING)


async def test_an_evaluator_that_fails_ends_its_own_attempt_only(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="failed at task 0: it broke") as raised:
        await evaluate(_program(tmp_path, 'echo \'{"status": "error", "reasons": ["it broke"]}\''), NOTHING)
    assert not raised.value.resumable


async def test_a_program_that_cannot_be_started_is_named(tmp_path: Path) -> None:
    with pytest.raises(EvaluatorError, match=r"do not start: .*/nowhere: No such file"):
        await evaluate(tmp_path / "nowhere", NOTHING)


async def test_evaluators_that_do_not_end_are_a_failure_of_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.2)
    with pytest.raises(EnvironmentFailure, match=r"did not end within 0\.2 s"):
        await evaluate(_program(tmp_path, "exec sleep 60"), NOTHING)


async def test_the_evaluators_get_no_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    script = 'printf \'{"status": "failure", "reasons": ["key: %s"]}\' "$OPENAI_API_KEY"'
    assert (await evaluate(_program(tmp_path, script), msgspec.structs.replace(NOTHING, answer=""))).reason == "key:"


def test_traffic_that_fulfils_a_task_scores_1(tasks: list[dict[str, Any]], pytestconfig: pytest.Config) -> None:
    """One task in five, or all of them with --parity-live: nothing that an evaluator compares is scrubbed."""
    made = [(task, answer(task), exchanges(task)) for task in tasks if task["task_id"] not in (*UNREACHABLE, 699, 700)]
    attempts = [attempt(task, given, found) for task, given, found in made if given is not None and found is not None]
    assert len(attempts) > 600
    attempts = attempts if pytestconfig.getoption("parity_live") else attempts[::5]
    wrong = [(one.task_id, result) for one, result in zip(attempts, scored(*attempts), strict=True) if result.status != "success"]
    assert not wrong


def _wants_not_found(task: dict[str, Any]) -> bool:
    return len(task["eval"]) == 1 and task["eval"][0]["expected"]["status"] == "NOT_FOUND_ERROR" and task["task_id"] not in UNREACHABLE


def _with_body(done: RecordedAttempt, text: str) -> list[dict[str, Any]]:
    last = json.loads(json.dumps(done.entries[-1]))
    last["request"]["postData"]["text"] = text
    return [*done.entries[:-1], last]


def _program(folder: Path, script: str) -> Path:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\ncat >/dev/null\n{script}\n")
    path.chmod(0o755)
    return path


def test_a_har_is_scrubbed_by_the_values_of_secrets(tmp_path: Path) -> None:
    entry = {"request": {"url": "http://shop.test/?note=Kiwi-Zebra-77", "postData": {"text": "a=" + ".".join("Kiwi-Zebra-77")}}}
    attempt = RecordedAttempt(task_id=3, answer=None, entries=[entry], environments={})
    place = save(str(tmp_path), attempt, Scrubber([Secret("word", "Kiwi-Zebra-77")]))
    text = (place / "network.har").read_text()
    assert text.count("<secret:word>") == 2
    assert "Zebra" not in text
