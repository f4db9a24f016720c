"""The answer of an attempt is in its result, however the attempt ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory, ToyGraph, ToyState
from exact.errors import EnvironmentFailure, ModelError
from exact.runs.journal.store import ResultLine, RunFolder
from exact.task import Outcome, Score
from tests.runs.toys import config, toy_runner

ANSWERS = ("42", "first line\nsecond line", '<b>"bold" & more</b>', "", "日本 🍵", "x" * 4_000)


async def answered(folder: Path, answer: str, **search: object) -> ResultLine:
    """Attempt a task whose only action is to answer."""
    graph = ToyGraph(
        name="question", instruction="How many?", start="page", states={"page": ToyState(text="A page", answers={answer: 1.0})}
    )
    (line,) = await toy_runner(folder, ToyFactory(graph), config(search={"iterations": 3, "k": 2, **search})).run()
    return line


@pytest.mark.parametrize("answer", ANSWERS)
async def test_an_answer_is_in_the_result_as_it_was_given(answer: str, tmp_path: Path) -> None:
    line = await answered(tmp_path, answer)
    assert (line.answer, line.score) == (answer, 1.0)
    assert [each.answer for each in RunFolder.open(tmp_path).results()] == [answer]


@pytest.mark.parametrize("algorithm", ["react", "best_of_n", "mcts"])
async def test_every_algorithm_reports_the_committed_answer(algorithm: str, tmp_path: Path) -> None:
    assert (await answered(tmp_path, "42", algorithm=algorithm)).answer == "42"


@pytest.mark.parametrize("error", [EnvironmentFailure("the page is gone"), ModelError("the judge did not answer")])
async def test_an_attempt_that_failed_after_answering_keeps_its_answer(
    error: Exception, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def evaluate(environment: ToyEnvironment, outcome: Outcome) -> Score:
        raise error

    monkeypatch.setattr(ToyEnvironment, "evaluate", evaluate)
    line = await answered(tmp_path, "42")
    assert (line.status, line.score, line.answer, line.began) == ("failed", None, "42", True)


async def test_an_attempt_that_gave_no_answer_has_none(tmp_path: Path) -> None:
    graph = ToyGraph(name="stuck", instruction="Go on.", start="page", states={"page": ToyState(text="A page")})
    (line,) = await toy_runner(tmp_path, ToyFactory(graph)).run()
    assert line.answer is None


async def test_an_evaluators_reason_is_in_the_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def evaluate(environment: ToyEnvironment, outcome: Outcome) -> Score:
        return Score(value=0.0, success=False, reason="41 is not 42")

    monkeypatch.setattr(ToyEnvironment, "evaluate", evaluate)
    line = await answered(tmp_path, "41")
    assert (line.score, line.score_reason) == (0.0, "41 is not 42")


async def test_an_attempt_whose_environment_never_started_did_not_begin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def reset(environment: ToyEnvironment, task: object) -> None:
        raise EnvironmentFailure("the site does not answer: is it running?")

    monkeypatch.setattr(ToyEnvironment, "reset", reset)
    line = await answered(tmp_path, "42")
    assert (line.status, line.began, line.resumable, line.answer) == ("failed", False, True, None)
