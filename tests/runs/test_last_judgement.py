"""The agent's own judge, out of order when an attempt has ended: that costs no score where something else judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from exact.agents.agent import Agent
from exact.context import Context, Evaluation
from exact.environments.toy.agents import ToyPolicy, ToyValue
from exact.environments.toy.environment import ToyEnvironment
from exact.environments.toy.factory import ToyFactory
from exact.environments.toy.known import chain
from exact.errors import AnswerError, ModelError
from exact.runs.journal import events as ev
from exact.runs.journal.store import ResultLine
from exact.runs.runner import Runner
from tests.runs.test_resume import journal
from tests.runs.toys import config, toy_runner

WORLD = chain(2)


class Judge:
    """A value function that fails at the end of an episode."""

    def __init__(self, error: ModelError | None) -> None:
        self._value, self._error = ToyValue(WORLD), error

    async def evaluate(self, context: Context) -> Evaluation:
        if context.terminated and self._error is not None:
            raise self._error
        return await self._value.evaluate(context)


def runner(folder: Path, error: ModelError | None, algorithm: str) -> Runner:
    """Return a runner that may simulate nothing, so that the last state has no evaluation when the attempt ends."""
    settings = config(search={"algorithm": algorithm, "iterations": 4, "k": 1, "iteration": {"transitions": 0}})
    made = toy_runner(folder, ToyFactory(WORLD), settings)
    made.build_agent = lambda settings, models: Agent(policy=ToyPolicy(WORLD), value=Judge(error))
    return made


async def ended(folder: Path, error: ModelError | None, algorithm: str) -> tuple[ResultLine, list[ev.Failed]]:
    """Return the result line, and the failures of evaluating the end."""
    (line,) = await runner(folder, error, algorithm).run()
    events = journal(folder)
    over = next(i for i, event in enumerate(events) if isinstance(event, ev.Ended))
    return line, [event for event in events[over:] if isinstance(event, ev.Failed)]


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments without an evaluator."""
    begin = ToyEnvironment.__init__

    def made(self: ToyEnvironment, *args: Any, **more: Any) -> None:
        begin(self, *args, **more)
        self.capabilities = msgspec.structs.replace(self.capabilities, evaluates=False)

    monkeypatch.setattr(ToyEnvironment, "__init__", made)


@pytest.mark.parametrize(("error", "what"), [(ModelError("503"), "model"), (AnswerError("no verdict, asked 3 times"), "answer")])
async def test_an_unavailable_judge_at_the_end_is_recorded_and_the_attempt_is_scored(error: ModelError, what: str, tmp_path: Path) -> None:
    line, failed = await ended(tmp_path, error, "greedy")
    assert (line.status, line.score, line.value, line.missing) == ("scored", 1.0, None, "")
    assert [(event.what, event.reason, event.selection) for event in failed] == [(what, str(error), -1)]


async def test_an_unavailable_model_is_a_failure_where_nothing_else_evaluates(unjudged: None, tmp_path: Path) -> None:
    line, failed = await ended(tmp_path, ModelError("503"), "react")
    assert (line.status, line.score, line.missing, line.reason) == ("failed", None, "model", "503") and len(failed) == 1


async def test_a_recovered_judge_is_asked_when_the_attempt_resumes(unjudged: None, tmp_path: Path) -> None:
    await ended(tmp_path, ModelError("503"), "react")
    whole = journal(tmp_path)
    assert isinstance(whole[-2], ev.Failed) and isinstance(whole[-1], ev.Finished)
    line, failed = await ended(tmp_path, None, "react")
    rest = journal(tmp_path)[len(whole) :]
    assert [type(event) for event in rest] == [ev.Resumed, ev.Rebuilt, ev.Judged, ev.Finished]
    assert (line.status, line.value, line.evaluations, len(failed)) == ("judged", 1.0, 1, 1)
